//! Before the gate a key is free again; after it nobody knows.

use std::time::Duration;

use super::{
    Harness,
    requests::{
        COMPLETED, UNKNOWN, answer, begin, completed, executing, other, owner, patient, request,
        takeover, unknown,
    },
};
use crate::{
    domain::{Cause, Retention},
    ledger::{Begin, Begun, Ended, KeyState},
};

pub(in crate::ledger) async fn a_hold_dropped_before_its_gate_frees_the_key<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    drop(owner(begin(&ledger, request(1)).await));

    assert_eq!(owner(begin(&ledger, patient(1)).await).attempt(), 1);
}

pub(in crate::ledger) async fn a_hold_dropped_after_its_gate_leaves_the_key_unknown<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    drop(executing(&ledger, request(1)).await);

    let intent = unknown(begin(&ledger, patient(1)).await);
    assert_eq!(intent.cause, Some(Cause::Stopped));
    assert_eq!((intent.attempt, intent.may_have_run), (1, false));
}

// R5
pub(in crate::ledger) async fn an_unknown_key_is_granted_after_its_retention_only<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    executing(&ledger, request(1)).await.abandon(Cause::TimedOut).await.unwrap();

    harness.advance(UNKNOWN.saturating_sub(Duration::from_millis(50))).await;
    unknown(begin(&ledger, request(1)).await);
    harness.advance(Duration::from_millis(50)).await;

    let hold = owner(begin(&ledger, request(1)).await);
    assert_eq!(hold.attempt(), 1);
    // A new life: nothing of it has run.
    assert!(matches!(hold.release().await, Ok(Ended::Released)));
}

pub(in crate::ledger) async fn an_unknown_key_without_retention_stays_unknown<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let retention = Retention { completed: COMPLETED, unknown: None };
    let hold = executing(&ledger, Begin { retention, ..request(1) }).await;
    hold.abandon(Cause::TimedOut).await.unwrap();

    harness.advance(10 * UNKNOWN).await;

    unknown(begin(&ledger, request(1)).await);
}

pub(in crate::ledger) async fn another_request_is_refused_by_an_unknown_key<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    executing(&ledger, request(1)).await.abandon(Cause::TimedOut).await.unwrap();

    for begun in [
        begin(&ledger, other(1)).await,
        begin(&ledger, Begin { takeover: takeover(1, 9).takeover, ..other(1) }).await,
    ] {
        assert!(matches!(begun, Begun::FingerprintMismatch(KeyState::Unknown)));
    }
}

pub(in crate::ledger) async fn a_takeover_is_a_further_attempt_with_a_higher_token<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let first = executing(&ledger, request(1)).await;
    let token = first.token();
    first.abandon(Cause::TimedOut).await.unwrap();

    let second = executing(&ledger, takeover(1, 2)).await;

    assert_eq!(second.attempt(), 2);
    assert!(second.token() > token);
    assert!(matches!(begin(&ledger, takeover(1, 3)).await, Begun::InProgress));
    second.abandon(Cause::Interrupted).await.unwrap();
    let intent = unknown(begin(&ledger, request(1)).await);
    assert_eq!((intent.attempt, intent.may_have_run), (2, true));
    assert_eq!(intent.cause, Some(Cause::Interrupted));
}

pub(in crate::ledger) async fn takeovers_end_at_their_bound<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    for attempt in 1..=3 {
        let hold = executing(&ledger, takeover(1, 3)).await;
        assert_eq!(hold.attempt(), attempt);
        hold.abandon(Cause::TimedOut).await.unwrap();
    }

    assert_eq!(unknown(begin(&ledger, takeover(1, 3)).await).attempt, 3);
}

pub(in crate::ledger) async fn a_release_after_a_takeover_leaves_the_key_unknown<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    executing(&ledger, request(1)).await.abandon(Cause::TimedOut).await.unwrap();

    let ended = owner(begin(&ledger, takeover(1, 2)).await).release().await.unwrap();

    assert!(matches!(ended, Ended::Unknown));
    assert_eq!(unknown(begin(&ledger, request(1)).await).cause, Some(Cause::TimedOut));
}

pub(in crate::ledger) async fn a_takeover_that_commits_completes_the_key<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    executing(&ledger, request(1)).await.abandon(Cause::TimedOut).await.unwrap();

    executing(&ledger, takeover(1, 2)).await.commit(answer("receipt")).await.unwrap();

    let record = completed(begin(&ledger, request(1)).await);
    assert_eq!((record.attempt, &record.response), (2, &answer("receipt")));
    harness.advance(COMPLETED).await;
    assert_eq!(owner(begin(&ledger, request(1)).await).attempt(), 1);
}
