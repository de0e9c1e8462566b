//! A disk that is full, broken or not ours any more.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::Instant};

use super::{
    disk::Disk,
    harness::{START, on_disk, settings},
};
use crate::{
    domain::{Clock, FencingToken, KeyId},
    ledger::{
        Begin, Begun, Effect, EndError, Ledger, LedgerError,
        embedded::{
            Durability, Embedded,
            store::{Change, Kind, Place},
        },
        suite::requests::{answer, begin, completed, executing, other, owner, patient, request},
    },
};

const SHORT: Duration = Duration::from_millis(150);

fn impatient(disk: &Disk) -> Arc<dyn Ledger> {
    let (clock, _hands) = Clock::by_hand(START);
    let settings =
        super::super::Settings { timeout: SHORT, ..settings(&clock, Durability::Memory) };
    Arc::new(Embedded::in_file(&settings, disk.opener()).unwrap())
}

/// An impatient ledger may refuse even on a sound disk, if the machine is busy.
async fn sooner_or_later(ledger: &Arc<dyn Ledger>, request: Begin) -> Begun {
    loop {
        match ledger.begin(request.clone()).await {
            Ok(begun) => return begun,
            Err(LedgerError::Unavailable { .. }) => {}
            Err(
                error @ (LedgerError::SessionLost
                | LedgerError::SessionLostBeginning
                | LedgerError::RecordUnreadable { .. }
                | LedgerError::Overloaded { .. }),
            ) => panic!("{error}"),
        }
    }
}

fn healthy(disk: &Disk) -> Arc<dyn Ledger> {
    on_disk(disk, &Clock::by_hand(START).0)
}

#[tokio::test]
async fn a_full_disk_refuses_until_there_is_room_again() {
    let disk = Disk::default();
    let ledger = impatient(&disk);
    disk.fail(true);
    let started = Instant::now();

    let refused = ledger.begin(request(1)).await.unwrap_err();

    assert!(matches!(refused, LedgerError::Unavailable { .. }), "{refused:?}");
    assert!(started.elapsed() >= SHORT);
    while ledger.health().is_ok() {
        tokio::task::yield_now().await;
    }
    disk.fail(false);
    // Nothing of the refused one is left.
    let hold = owner(sooner_or_later(&ledger, request(1)).await);
    assert_eq!(hold.attempt(), 1);
    assert!(ledger.health().is_ok());
    hold.release().await.unwrap();
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_is_stored_later() {
    let disk = Disk::default();
    let ledger = impatient(&disk);
    let hold = owner(sooner_or_later(&ledger, request(1)).await);
    hold.gate().open().unwrap();
    disk.fail(true);

    let error = hold.commit(answer("receipt")).await.unwrap_err();

    assert!(matches!(error, EndError::NotStored { .. }));
    assert_eq!(error.effect(), Effect::Possible);
    assert!(matches!(sooner_or_later(&ledger, request(1)).await, Begun::InProgress));
    disk.fail(false);
    completed(sooner_or_later(&ledger, patient(1)).await);
    let reopened = healthy(&disk.cut(|| false));
    completed(begin(&reopened, request(1)).await);
}

#[tokio::test]
async fn closing_on_a_broken_disk_waits_for_ends_only() {
    let disk = Disk::default();
    let ledger = impatient(&disk);
    let hold = owner(sooner_or_later(&ledger, request(1)).await);
    hold.gate().open().unwrap();
    disk.fail(true);
    ledger.begin(request(2)).await.unwrap_err();
    let error = hold.commit(answer("receipt")).await.unwrap_err();
    assert!(matches!(error, EndError::NotStored { .. }));

    let mut closed = tokio_test::task::spawn(ledger.close());
    tokio_test::assert_pending!(closed.poll());
    disk.fail(false);
    closed.await;
    completed(begin(&healthy(&disk.kill()), request(1)).await);

    let disk = Disk::default();
    let ledger = impatient(&disk);
    disk.fail(true);
    ledger.begin(request(2)).await.unwrap_err();
    ledger.close().await;
}

// R28
/// The failed sync may have reached the disk or not: either way the outcome is the same.
#[tokio::test]
async fn one_failure_at_any_write_costs_no_request_and_runs_none_twice() {
    let mut cases = JoinSet::new();
    for (patience, lies) in (0..60).flat_map(|patience| [(patience, false), (patience, true)]) {
        cases.spawn(async move {
            let disk = Disk::default();
            let ledger = healthy(&disk);
            disk.fail_after(patience, lies);
            let hold = executing(&ledger, request(1)).await;
            assert!(matches!(begin(&ledger, request(1)).await, Begun::InProgress));
            hold.commit(answer("receipt")).await.unwrap();
            owner(begin(&ledger, request(2)).await).release().await.unwrap();
            completed(begin(&ledger, request(1)).await);
            let reopened = healthy(&disk.cut(|| false));
            completed(begin(&reopened, request(1)).await);
            owner(begin(&reopened, request(2)).await);
            disk.has_failed()
        });
    }
    let failed = cases.join_all().await.into_iter().filter(|&failed| failed).count();
    assert!(failed > 20, "{failed} failures: the range of writes is covered");
}

#[tokio::test]
async fn a_file_that_took_the_ledgers_place_is_not_used() {
    let disk = Disk::default();
    let ledger = impatient(&disk);
    let stranger = Disk::default();
    healthy(&stranger).close().await;
    disk.replace(&stranger);
    let before = disk.contents();
    disk.fail(true);
    ledger.begin(request(1)).await.unwrap_err();
    disk.fail(false);

    let trouble = loop {
        match ledger.begin(request(1)).await.unwrap_err() {
            LedgerError::Unavailable { reason, .. } if reason.contains("another file") => {
                break reason;
            }
            LedgerError::Unavailable { .. } => {}
            error @ (LedgerError::SessionLost
            | LedgerError::SessionLostBeginning
            | LedgerError::RecordUnreadable { .. }
            | LedgerError::Overloaded { .. }) => panic!("{error}"),
        }
    };

    assert!(ledger.health().unwrap_err().to_string().contains(&trouble));
    assert!(disk.contents().len() >= before.len());
}

#[tokio::test]
async fn an_unreadable_value_blocks_its_own_key_only_and_is_kept() {
    let disk = Disk::default();
    let ledger = on_disk(&disk, &Clock::by_hand(START).0);
    for (key, value) in [(1, vec![99, 1, 2, 3]), (2, vec![1, 1, 2, 3]), (3, Vec::new())] {
        let place = Place {
            expires_at: START.after(Duration::from_mins(1)),
            token: FencingToken::new(key.into()),
        };
        let key = KeyId::from_bytes([key; 32]);
        let change = Change::Settle { key, place, kind: Kind::Completed, value };
        ledger.core.store.apply(&mut std::iter::once(&change), ledger.core.mark()).unwrap();
    }
    let ledger: Arc<dyn Ledger> = ledger;

    for key in [1, 2, 3, 1, 2, 3] {
        for begin in [request(key), other(key)] {
            let error = ledger.begin(begin).await.unwrap_err();
            assert!(matches!(error, LedgerError::RecordUnreadable { .. }), "{error:?}");
        }
    }
    assert!(ledger.health().is_ok());
    owner(begin(&ledger, request(4)).await).release().await.unwrap();
}

/// Requests that find the file closed say nothing new to the writer that opens it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_one_failed_write_the_file_is_opened_once_more_whatever_arrives() {
    let disk = Disk::default();
    let ledger = healthy(&disk);
    let opened = disk.opened();
    disk.delay(SHORT);
    disk.fail_after(0, false);

    let mut arrivals = JoinSet::new();
    for key in 0..100 {
        let ledger = Arc::clone(&ledger);
        arrivals.spawn(async move {
            owner(begin(&ledger, request(key)).await).release().await.unwrap();
        });
        // Some come before the failure, some while the file is closed, some afterwards.
        tokio::time::sleep(SHORT / 25).await;
    }
    arrivals.join_all().await;

    assert!(disk.has_failed());
    assert_eq!(disk.opened() - opened, 1);
}
