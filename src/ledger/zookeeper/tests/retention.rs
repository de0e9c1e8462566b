//! What is expired goes, and nothing else does.

use std::time::Duration;

use super::harness::{new_root, open};
use crate::ledger::{
    Ledger,
    suite::requests::{COMPLETED, UNKNOWN, answer, begin, completed, executing, request, unknown},
    zookeeper::{ZooKeeper, sweep},
};

async fn pass(ledger: &ZooKeeper) -> sweep::Pass {
    let session = ledger.core.sessions.any().expect("a session");
    sweep::pass(&ledger.core, &session).await.expect("the ensemble answers")
}

async fn let_pass(ledger: &ZooKeeper, duration: Duration) {
    tokio::time::sleep(Duration::from_millis(2)).await;
    ledger.core.time().pass(duration);
    tokio::time::sleep(Duration::from_millis(2)).await;
}

// Z21
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_keys_are_swept_after_their_grace_and_leave_no_node() {
    let ledger = open(&new_root()).await;
    let any = std::sync::Arc::clone(&ledger) as std::sync::Arc<dyn Ledger>;
    executing(&any, request(1)).await.commit(answer("receipt")).await.unwrap();
    let cause = crate::domain::Cause::TimedOut;
    executing(&any, request(2)).await.abandon(cause).await.unwrap();
    let held = executing(&any, request(3)).await;

    let seen = pass(&ledger).await;
    assert_eq!((seen.completed, seen.unknown, seen.in_progress, seen.deleted), (1, 1, 1, 0));

    // Within the grace nothing is deleted, so that no cache or lagging server is ahead of it.
    let_pass(&ledger, COMPLETED + Duration::from_mins(4)).await;
    assert_eq!(pass(&ledger).await.deleted, 0);
    let_pass(&ledger, Duration::from_mins(2)).await;
    assert_eq!(pass(&ledger).await.deleted, 1);
    unknown(begin(&any, request(2)).await);

    let_pass(&ledger, UNKNOWN).await;
    let seen = pass(&ledger).await;
    assert_eq!((seen.deleted, seen.in_progress), (1, 1), "a held key is not swept");

    held.commit(answer("late")).await.unwrap();
    completed(begin(&any, request(3)).await);
    let_pass(&ledger, COMPLETED + Duration::from_mins(6)).await;
    assert_eq!(pass(&ledger).await.deleted, 1);
    let session = ledger.core.sessions.any().expect("a session");
    for key in 1..=3 {
        let shard = ledger.core.layout.shard(key);
        assert_eq!(session.client.children(&shard).await.unwrap(), Vec::<String>::new());
    }
}

// Z34
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_expired_keys_are_swept_in_one_pass() {
    const KEYS: u8 = 200;
    let ledger = open(&new_root()).await;
    let any = std::sync::Arc::clone(&ledger) as std::sync::Arc<dyn Ledger>;
    for key in 0..KEYS {
        executing(&any, request(key)).await.commit(answer("receipt")).await.unwrap();
    }
    let_pass(&ledger, COMPLETED + Duration::from_mins(6)).await;

    let started = tokio::time::Instant::now();
    let seen = pass(&ledger).await;

    println!("{KEYS} keys swept in {:?}", started.elapsed());
    assert_eq!((seen.deleted, seen.completed), (u64::from(KEYS), 0));
    assert_eq!(pass(&ledger).await, sweep::Pass::default());
}
