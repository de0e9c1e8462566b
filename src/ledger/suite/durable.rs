//! What outlives the process that wrote it.

use std::pin::pin;

use tokio_test::{assert_pending, task};

use super::{
    Harness,
    requests::{answer, begin, completed, executing, owner, request, takeover, unknown},
};
use crate::{
    domain::Cause,
    ledger::{EndError, LedgerError},
};

// R1, R2, R4, R73
pub(in crate::ledger) async fn an_open_intent_is_unknown_after_a_crash<H: Harness>() {
    let harness = H::start().await;
    if !harness.is_durable() {
        return;
    }
    let hold = owner(begin(&harness.ledger(), request(1)).await);

    let harness = harness.crash().await;

    let intent = unknown(begin(&harness.ledger(), request(1)).await);
    assert_eq!(intent.cause, Some(Cause::HolderGone));
    assert_eq!(intent.token, hold.token());
}

pub(in crate::ledger) async fn an_answer_outlives_a_crash<H: Harness>() {
    let harness = H::start().await;
    if !harness.is_durable() {
        return;
    }
    let hold = executing(&harness.ledger(), request(1)).await;
    hold.commit(answer("receipt")).await.unwrap();

    let harness = harness.crash().await;

    let record = completed(begin(&harness.ledger(), request(1)).await);
    assert_eq!(record.response, answer("receipt"));
}

pub(in crate::ledger) async fn a_release_outlives_a_crash<H: Harness>() {
    let harness = H::start().await;
    if !harness.is_durable() {
        return;
    }
    let hold = executing(&harness.ledger(), request(1)).await;
    hold.release().await.unwrap();

    let harness = harness.crash().await;

    assert_eq!(owner(begin(&harness.ledger(), request(1)).await).attempt(), 1);
}

pub(in crate::ledger) async fn an_abandoned_key_stays_unknown_after_a_crash<H: Harness>() {
    let harness = H::start().await;
    if !harness.is_durable() {
        return;
    }
    let hold = executing(&harness.ledger(), request(1)).await;
    hold.abandon(Cause::Interrupted).await.unwrap();

    let harness = harness.crash().await;

    let intent = unknown(begin(&harness.ledger(), request(1)).await);
    assert_eq!(intent.cause, Some(Cause::Interrupted));
}

// R31
pub(in crate::ledger) async fn tokens_grow_over_crashes<H: Harness>() {
    let mut harness = H::start().await;
    let mut last = None;
    for attempt in 1..5 {
        let hold = owner(begin(&harness.ledger(), takeover(1, attempt)).await);
        assert!(Some(hold.token()) > last);
        last = Some(hold.token());
        if !harness.is_durable() {
            return;
        }
        harness = harness.crash().await;
        drop(hold);
    }
}

pub(in crate::ledger) async fn closing_waits_for_the_ends_that_were_asked_for<H: Harness>() {
    let harness = H::start().await;
    if !harness.is_durable() {
        return;
    }
    let ledger = harness.ledger();
    let hold = executing(&ledger, request(1)).await;
    let mut commit = task::spawn(hold.commit(answer("receipt")));
    // Asked for, but nobody watches.
    drop(commit.poll());
    drop(commit);
    ledger.close().await;
    drop(ledger);

    let harness = harness.restart().await;

    completed(begin(&harness.ledger(), request(1)).await);
}

pub(in crate::ledger) async fn a_hold_is_lost_when_the_ledger_is_closed<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = owner(begin(&ledger, request(1)).await);
    let mut lost = pin!(hold.lost());
    assert_pending!(task::spawn(lost.as_mut()).poll());

    ledger.close().await;

    lost.await;
    assert!(hold.gate().open().is_err());
    assert_eq!(hold.commit(answer("late")).await.unwrap_err(), EndError::LockLost);
    let refused = ledger.begin(request(2)).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Unavailable { .. }));
    assert!(ledger.health().is_err());
}
