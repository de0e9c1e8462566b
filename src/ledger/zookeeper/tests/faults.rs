//! Sessions that end, attempts that are undone, and nodes that nobody knows.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::harness::{new_root, open};
use crate::{
    domain::AttemptId,
    ledger::{
        DecideError, EndError, Ended, Ledger, LedgerError, Operator,
        suite::{
            operator::CALL,
            requests::{answer, begin, completed, executing, owner, patient, request, unknown},
        },
        zookeeper::{ZooKeeper, lock, paths, reconcile::reconcile, session::Session},
    },
};

/// As long as a session, and more.
const SOON: Duration = Duration::from_secs(20);

async fn ledgers() -> (Arc<ZooKeeper>, Arc<dyn Ledger>, Arc<dyn Ledger>) {
    let root = new_root();
    let first = open(&root).await;
    let second = open(&root).await;
    (Arc::clone(&first), first, second)
}

fn session_of(ledger: &ZooKeeper, key: u8) -> Arc<Session> {
    ledger.core.sessions.usable(&request(key).key).expect("a session")
}

// Z32
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_is_lost_with_its_session_and_its_key_is_unknown() {
    let (ledger, first, second) = ledgers().await;
    let hold = executing(&first, request(1)).await;
    let session = session_of(&ledger, 1);
    drop(session.client.close());

    timeout(SOON, hold.lost()).await.expect("the hold is lost");
    assert!(hold.gate().open().is_err());
    assert_eq!(hold.commit(answer("late")).await.unwrap_err(), EndError::LockLost);
    unknown(begin(&second, patient(1)).await);
    // The ledger goes on with another session.
    owner(begin(&first, patient(2)).await).release().await.unwrap();
}

// Z36
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_outlived_every_call_is_taken_by_force_and_leaves_the_key_unknown() {
    let (ledger, first, second) = ledgers().await;
    let hold = executing(&first, request(1)).await;
    let key = request(1).key;
    let let_pass = |duration| ledger.core.time().pass(duration);
    let_pass(CALL);
    let too_early = ledger.force(key, CALL).await;
    assert!(matches!(too_early, Err(DecideError::NotForced { .. })), "{too_early:?}");

    let_pass(ledger.core.settings.session_timeout);
    ledger.force(key, CALL).await.unwrap();

    unknown(begin(&second, patient(1)).await);
    assert_eq!(hold.commit(answer("late")).await.unwrap_err(), EndError::LockLost);
    unknown(begin(&second, patient(1)).await);
}

/// Its lock node is as old as its wait, its call is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_a_promoted_waiter_is_not_taken_while_its_call_may_be_open() {
    let (ledger, first, second) = ledgers().await;
    let hold = executing(&first, request(1)).await;
    let key = request(1).key;
    let promoted = async {
        let node = ledger.core.layout.key(&key).node;
        let session = session_of(&ledger, 1);
        while paths::contenders(&session.client.children(&node).await.unwrap()) < 2 {}
        ledger.core.time().pass(CALL + ledger.core.settings.session_timeout);
        // Nothing is written in the millisecond that time passes in.
        tokio::time::sleep(Duration::from_millis(2)).await;
        hold.release().await.unwrap();
    };
    let (begun, ()) = tokio::join!(begin(&second, patient(1)), promoted);
    let hold = owner(begun);

    let forced = ledger.force(key, CALL).await;
    assert!(matches!(forced, Err(DecideError::NotForced { .. })), "{forced:?}");
    hold.commit(answer("receipt")).await.unwrap();
}

/// The client gets what is stored, which is what every retry gets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_an_operator_forestalled_is_told_what_was_decided() {
    let (ledger, first, second) = ledgers().await;
    let hold = executing(&first, request(1)).await;
    let key = request(1).key;
    ledger.core.time().pass(CALL + ledger.core.settings.session_timeout);
    ledger.force(key, CALL).await.unwrap();
    ledger.resolve(key, answer("by hand")).await.unwrap();

    let ended = hold.commit(answer("of the upstream")).await.unwrap();
    assert!(
        matches!(&ended, Ended::Decided(record) if record.response == answer("by hand")),
        "{ended:?}"
    );
    assert_eq!(completed(begin(&second, patient(1)).await).response, answer("by hand"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_sent_nothing_is_undone_when_its_session_is_lost() {
    let (ledger, first, second) = ledgers().await;
    let hold = owner(begin(&first, request(1)).await);
    drop(session_of(&ledger, 1).client.close());
    timeout(SOON, hold.lost()).await.expect("the hold is lost");
    assert_eq!(hold.release().await.unwrap_err(), EndError::LockLost);

    let freed = async {
        loop {
            if let crate::ledger::Begun::Owner(hold) = begin(&second, patient(1)).await {
                return hold;
            }
        }
    };
    let hold = timeout(SOON, freed).await.expect("the key is freed");
    assert_eq!(hold.attempt(), 1);
}

// Z22, Z28
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_is_told_when_its_session_is_lost() {
    let (ledger, first, second) = ledgers().await;
    let hold = executing(&second, request(1)).await;
    let waiting = Arc::clone(&first);
    let waiter = tokio::spawn(async move { waiting.begin(patient(1)).await });
    let session = session_of(&ledger, 1);
    while session.live_count() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(session.client.close());

    let told = timeout(SOON, waiter).await.expect("the waiter is told").unwrap();
    assert!(matches!(told, Err(LedgerError::SessionLost)), "{told:?}");
    hold.commit(answer("receipt")).await.unwrap();
}

// Z6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_an_attempts_name_that_another_session_owns_is_not_the_attempts() {
    let (ledger, _first, second) = ledgers().await;
    let former = owner(begin(&second, request(1)).await);
    let place = former.place().expect("a lock of an ensemble has a place");
    let (key, _) = place.path.rsplit_once('/').expect("a path");
    let session = session_of(&ledger, 1);
    let live = session.enter(AttemptId::random());
    let paths = ledger.core.layout.key(&request(1).key);
    assert_eq!(paths.node, key);
    let third = open(ledger.core.layout.root()).await;
    let other = session_of(&third, 1);
    let prefix = paths.lock_prefix(live.attempt());
    let mode = zookeeper_client::CreateMode::EphemeralSequential;
    other.client.create(&prefix, b"", mode).await.unwrap();

    assert_eq!(lock::find(&live, &paths).await, Some(None));
    // The same name under the attempt's own session is found.
    let (own, _) = session.client.create(&prefix, b"", mode).await.unwrap();
    drop(other.client.close());
    let found = async { while lock::find(&live, &paths).await != Some(Some(own.clone())) {} };
    timeout(SOON, found).await.expect("the node of the own session is found");
    former.release().await.unwrap();
}

// Z35
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_node_that_no_attempt_knows_is_deleted() {
    let (ledger, first, _second) = ledgers().await;
    let hold = executing(&first, request(1)).await;
    let session = session_of(&ledger, 1);
    let paths = ledger.core.layout.key(&request(1).key);
    let stray = paths.lock_prefix(AttemptId::random());
    let mode = zookeeper_client::CreateMode::EphemeralSequential;
    let (stray, _) = session.client.create(&stray, b"", mode).await.unwrap();

    reconcile(&ledger.core, &session).await.unwrap();

    assert_eq!(session.client.exists(&stray).await.unwrap(), None);
    hold.commit(answer("receipt")).await.expect("the lock of a live attempt stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_vanished_alone_ends_its_own_hold_only() {
    let (ledger, first, _second) = ledgers().await;
    let hold = executing(&first, request(1)).await;
    let session = session_of(&ledger, 1);
    let place = hold.place().expect("a lock of an ensemble has a place");
    session.client.delete(&place.path).await.unwrap();

    reconcile(&ledger.core, &session).await.unwrap();

    timeout(SOON, hold.lost()).await.expect("the hold is lost");
    assert!(session.is_leased());
    assert_eq!(hold.commit(answer("late")).await.unwrap_err(), EndError::LockLost);
    unknown(begin(&first, patient(1)).await);
}

// Z16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_whose_node_was_reaped_is_begun_anew() {
    let (ledger, first, _second) = ledgers().await;
    owner(begin(&first, request(1)).await).release().await.unwrap();
    let session = session_of(&ledger, 1);
    let paths = ledger.core.layout.key(&request(1).key);
    assert_eq!(session.client.exists(&paths.node).await.unwrap(), None);

    executing(&first, request(1)).await.commit(answer("receipt")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_cannot_be_read_is_refused_and_stays() {
    let (ledger, first, _second) = ledgers().await;
    let session = session_of(&ledger, 1);
    let paths = ledger.core.layout.key(&request(1).key);
    let mode = zookeeper_client::CreateMode::Persistent;
    session.client.create(&paths.node, b"", mode).await.unwrap();
    session.client.create(&paths.record, b"\xffnewer", mode).await.unwrap();

    let refused = first.begin(request(1)).await.unwrap_err();

    assert!(matches!(refused, LedgerError::RecordUnreadable { .. }), "{refused:?}");
    assert_eq!(session.client.get(&paths.record).await.unwrap().0, b"\xffnewer");
    owner(begin(&first, request(2)).await).release().await.unwrap();
}
