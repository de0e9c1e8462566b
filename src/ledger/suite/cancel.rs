//! A future of the ledger may be dropped at any time.

use tokio_test::task;

use super::{
    Harness,
    requests::{answer, begin, completed, executing, owner, patient, request, takeover, unknown},
};
use crate::domain::Cause;

pub(in crate::ledger) async fn a_begin_that_was_dropped_leaves_no_hold<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    for _ in 0..20 {
        let mut begin = task::spawn(ledger.begin(request(1)));
        // Whatever it came to.
        drop(begin.poll());
        drop(begin);
    }

    assert_eq!(owner(begin(&ledger, patient(1)).await).attempt(), 1);
}

pub(in crate::ledger) async fn a_takeover_that_was_dropped_leaves_the_key_unknown<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    executing(&ledger, request(1)).await.abandon(Cause::TimedOut).await.unwrap();

    let mut second = task::spawn(ledger.begin(takeover(1, 2)));
    drop(second.poll());
    drop(second);

    assert_eq!(unknown(begin(&ledger, patient(1)).await).cause, Some(Cause::TimedOut));
}

pub(in crate::ledger) async fn a_waiter_that_was_dropped_leaves_nothing<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = owner(begin(&ledger, request(1)).await);
    let mut waiter = task::spawn(ledger.begin(patient(1)));
    tokio_test::assert_pending!(waiter.poll());
    drop(waiter);

    hold.release().await.unwrap();

    owner(begin(&ledger, request(1)).await);
}

// R36
pub(in crate::ledger) async fn an_end_takes_effect_although_nobody_watches<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = executing(&ledger, request(1)).await;
    let mut commit = task::spawn(hold.commit(answer("receipt")));
    drop(commit.poll());
    drop(commit);

    completed(begin(&ledger, patient(1)).await);
}
