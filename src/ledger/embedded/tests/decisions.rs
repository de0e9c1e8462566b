//! An operator's decision at every moment of a request's life, and what it leaves in the file.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    disk::Disk,
    harness::{DelayedHarness, DiskHarness, START, on_disk},
};
use crate::{
    domain::{Clock, FencingToken, KeyId},
    ledger::{
        Begin, Begun, DecideError, Ledger, LedgerError, Operator, Query,
        embedded::{
            Embedded,
            store::{Change, Kind, Place},
        },
        suite::{
            Harness,
            operator::{CALL, OperatorHarness, left_unknown},
            requests::{UNKNOWN, answer, begin, completed, owner, patient, request, takeover},
        },
    },
};

const KEY: KeyId = KeyId::from_bytes([1; 32]);

/// Longer than any life here, in milliseconds.
const LIFE: u64 = 20;

/// Runs a request to its end, if it is granted the key; whether it was.
async fn run(ledger: &Arc<dyn Ledger>, calls: &AtomicUsize, request: Begin) -> Option<Begun> {
    let begun = begin(ledger, request).await;
    let Begun::Owner(hold) = begun else { return Some(begun) };
    hold.gate().open().unwrap();
    calls.fetch_add(1, SeqCst);
    sleep(Duration::from_millis(3)).await;
    hold.commit(answer("receipt")).await.unwrap();
    None
}

async fn start() -> (Arc<dyn Ledger>, Arc<dyn Operator>, AtomicUsize) {
    let harness = DelayedHarness::start().await;
    let ledger = harness.ledger();
    left_unknown(&ledger, 1).await;
    (ledger, harness.operator(), AtomicUsize::new(0))
}

fn patient_takeover() -> Begin {
    Begin { wait_until: patient(1).wait_until, ..takeover(1, 2) }
}

#[tokio::test(start_paused = true)]
async fn a_resolve_and_a_takeover_at_any_distance_give_one_answer() {
    for (early, late) in (0..LIFE).flat_map(|offset| [(offset, 0), (0, offset)]) {
        let (ledger, operator, calls) = start().await;
        let (taken, resolved) = tokio::join!(
            async {
                sleep(Duration::from_millis(early)).await;
                run(&ledger, &calls, patient_takeover()).await
            },
            async {
                sleep(Duration::from_millis(late)).await;
                operator.resolve(KEY, answer("by hand")).await
            }
        );

        let Begun::Completed(record) = begin(&ledger, patient(1)).await else {
            panic!("not completed, takeover at {early} ms and decision at {late} ms")
        };
        match resolved {
            Ok(resolved) => {
                assert_eq!(record, resolved);
                assert!(matches!(taken, Some(Begun::Completed(_))), "{taken:?}");
                assert_eq!(calls.into_inner(), 0);
            }
            Err(error) => {
                assert!(
                    matches!(error, DecideError::InProgress | DecideError::Completed),
                    "{error}"
                );
                assert_eq!(record.response, answer("receipt"));
                assert_eq!(calls.into_inner(), 1);
            }
        }
    }
}

/// A new life or a takeover, never both: the decision and the requests are in one order.
#[tokio::test(start_paused = true)]
async fn a_release_at_any_moment_lets_one_request_run_at_a_time() {
    for (first, second) in (0..LIFE).flat_map(|at| (0..LIFE).map(move |second| (at, second))) {
        let (ledger, operator, calls) = start().await;
        let (_, released, _) = tokio::join!(
            run(&ledger, &calls, patient(1)),
            async {
                sleep(Duration::from_millis(first)).await;
                operator.release(KEY).await
            },
            async {
                sleep(Duration::from_millis(second)).await;
                run(&ledger, &calls, patient(1)).await
            }
        );
        released.unwrap();
        run(&ledger, &calls, patient(1)).await;
        assert_eq!(calls.into_inner(), 1, "released at {first} ms, retried at {second} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_dropped_at_any_moment_frees_the_key_or_leaves_it_unknown() {
    let mut outcomes = [0, 0];
    for offset in 0..LIFE {
        let (ledger, operator, _) = start().await;
        drop(timeout(Duration::from_millis(offset), operator.release(KEY)).await);
        match begin(&ledger, patient(1)).await {
            Begun::Unknown(_) => outcomes[0] += 1,
            Begun::Owner(hold) => {
                assert_eq!(hold.attempt(), 1);
                outcomes[1] += 1;
            }
            begun @ (Begun::Completed(_) | Begun::FingerprintMismatch(_) | Begun::InProgress) => {
                panic!("{begun:?} after {offset} ms")
            }
        }
    }
    assert!(outcomes.iter().all(|seen| *seen > 0), "{outcomes:?}");
}

#[tokio::test]
async fn a_decision_leaves_nothing_of_the_attempt_in_the_file_or_the_counts() {
    let harness = DiskHarness::start().await;
    let (ledger, operator) = (harness.ledger(), harness.operator());
    for key in [1, 2, 3] {
        left_unknown(&ledger, key).await;
    }
    let embedded: &Embedded = harness.embedded();
    assert_eq!((embedded.stats().unknown, embedded.stats().completed), (3, 0));

    operator.release(KEY).await.unwrap();
    operator.resolve(KeyId::from_bytes([2; 32]), answer("by hand")).await.unwrap();

    let stats = embedded.stats();
    assert_eq!((stats.unknown, stats.completed, stats.in_progress), (1, 1, 0));
    operator.release(KeyId::from_bytes([3; 32])).await.unwrap();
    let bytes = embedded.stats().bytes;
    assert!(bytes > 0 && bytes < stats.bytes, "{bytes}");
    assert_eq!(embedded.stats().unknown, 0);
}

#[tokio::test]
async fn a_decision_is_refused_once_the_ledger_is_closed() {
    let harness = DiskHarness::start().await;
    let ledger = harness.ledger();
    left_unknown(&ledger, 1).await;
    ledger.close().await;

    let refused = harness.operator().release(KEY).await;

    assert!(matches!(refused, Err(DecideError::Ledger(_))), "{refused:?}");
}

// R28
/// The failed sync may have reached the disk or not, and the change is applied again either way.
#[tokio::test]
async fn one_failure_at_any_write_costs_no_decision() {
    let mut cases = JoinSet::new();
    for (patience, lies) in (0..40).flat_map(|patience| [(patience, false), (patience, true)]) {
        cases.spawn(async move {
            let disk = Disk::default();
            let embedded = on_disk(&disk, &Clock::by_hand(START).0);
            let ledger = Arc::clone(&embedded) as Arc<dyn Ledger>;
            for key in [1, 2] {
                left_unknown(&ledger, key).await;
            }
            disk.fail_after(patience, lies);
            embedded.release(KEY).await.unwrap();
            embedded.resolve(KeyId::from_bytes([2; 32]), answer("by hand")).await.unwrap();
            let stats = embedded.stats();
            assert_eq!((stats.completed, stats.unknown), (1, 0));
            let reopened = on_disk(&disk.cut(|| false), &Clock::by_hand(START).0);
            let stats = reopened.stats();
            assert_eq!((stats.completed, stats.unknown), (1, 0));
            let reopened = reopened as Arc<dyn Ledger>;
            assert_eq!(owner(begin(&reopened, request(1)).await).attempt(), 1);
            let record = completed(begin(&reopened, request(2)).await);
            assert_eq!(record.response, answer("by hand"));
            disk.has_failed()
        });
    }
    let failed = cases.join_all().await.into_iter().filter(|&failed| failed).count();
    assert!(failed > 10, "{failed} failures: the range of writes is covered");
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_not_decided_about() {
    let ledger = on_disk(&Disk::default(), &Clock::by_hand(START).0);
    let place = Place { expires_at: START.after(UNKNOWN), token: FencingToken::new(1) };
    let value = vec![99, 1, 2, 3];
    let change = Change::Settle { key: KEY, place, kind: Kind::Unknown, value };
    ledger.core.store.apply(&mut std::iter::once(&change), ledger.core.mark()).unwrap();

    let page = ledger.list(Query { limit: 10, ..Query::default() }).await.unwrap();
    assert_eq!((page.entries.len(), &page.unreadable[..], page.next), (0, &[KEY][..], None));
    let unreadable = LedgerError::RecordUnreadable { reason: String::new() };
    let kind = std::mem::discriminant(&unreadable);
    assert_eq!(std::mem::discriminant(&ledger.show(KEY).await.unwrap_err()), kind);
    for refused in [
        ledger.release(KEY).await,
        ledger.force(KEY, CALL).await,
        ledger.resolve(KEY, answer("by hand")).await.map(drop),
    ] {
        let Err(DecideError::Ledger(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(std::mem::discriminant(&error), kind);
    }
}
