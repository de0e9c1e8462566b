//! One holder at a time, and what the others are told.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::Instant};

use super::{
    Harness,
    requests::{answer, begin, completed, executing, other, owner, patient, request, unknown},
};
use crate::{
    domain::Cause,
    ledger::{Begin, Begun, KeyState},
};

// R25, R29, R33
pub(in crate::ledger) async fn at_most_one_of_a_hundred_begins_owns_the_key<H: Harness>() {
    let harness = H::start().await;
    let mut begins = JoinSet::new();
    for _ in 0..100 {
        let ledger = harness.ledger();
        begins.spawn(async move { begin(&ledger, request(1)).await });
    }

    let begun = begins.join_all().await;

    let owners = begun.iter().filter(|begun| matches!(begun, Begun::Owner(_))).count();
    let others = begun.iter().filter(|begun| matches!(begun, Begun::InProgress)).count();
    assert_eq!((owners, others), (1, 99));
}

// R64
pub(in crate::ledger) async fn keys_are_independent<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let first = executing(&ledger, request(1)).await;
    let second = executing(&ledger, request(2)).await;

    first.commit(answer("one")).await.unwrap();

    assert!(matches!(begin(&ledger, request(2)).await, Begun::InProgress));
    second.release().await.unwrap();
    completed(begin(&ledger, request(1)).await);
    owner(begin(&ledger, request(2)).await);
}

// R31
pub(in crate::ledger) async fn tokens_grow_from_attempt_to_attempt<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let mut last = None;
    for _ in 0..5 {
        let hold = owner(begin(&ledger, request(1)).await);
        assert!(Some(hold.token()) > last);
        last = Some(hold.token());
        hold.release().await.unwrap();
    }
}

pub(in crate::ledger) async fn another_request_is_refused_while_the_first_is_held<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let _hold = owner(begin(&ledger, request(1)).await);

    // At once, although it would wait.
    let wait_until = Some(Instant::now() + Duration::from_mins(1));
    let begun = begin(&ledger, Begin { wait_until, ..other(1) }).await;

    assert!(matches!(begun, Begun::FingerprintMismatch(KeyState::InProgress)));
}

// R13, R14
pub(in crate::ledger) async fn a_waiter_is_given_the_answer_when_the_holder_commits<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = executing(&ledger, request(1)).await;
    let (waited, _) = tokio::join!(begin(&ledger, patient(1)), hold.commit(answer("receipt")));

    assert_eq!(completed(waited).response, answer("receipt"));
}

pub(in crate::ledger) async fn a_waiter_owns_the_key_when_the_holder_releases<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = owner(begin(&ledger, request(1)).await);
    let (waited, _) = tokio::join!(begin(&ledger, patient(1)), hold.release());

    assert_eq!(owner(waited).attempt(), 1);
}

// R3, R9
pub(in crate::ledger) async fn a_waiter_is_told_when_the_holder_abandons<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = executing(&ledger, request(1)).await;
    let (waited, _) = tokio::join!(begin(&ledger, patient(1)), hold.abandon(Cause::TimedOut));

    assert_eq!(unknown(waited).cause, Some(Cause::TimedOut));
}

pub(in crate::ledger) async fn a_waiter_is_refused_after_its_wait<H: Harness>() {
    let wait = Duration::from_millis(30);
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = owner(begin(&ledger, request(1)).await);
    let started = Instant::now();

    let begun = begin(&ledger, Begin { wait_until: Some(started + wait), ..request(1) }).await;

    assert!(matches!(begun, Begun::InProgress));
    assert!(started.elapsed() >= wait);
    hold.release().await.unwrap();
}

pub(in crate::ledger) async fn only_one_of_many_waiters_owns_a_released_key<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = owner(begin(&ledger, request(1)).await);
    let mut waiters = JoinSet::new();
    for _ in 0..20 {
        let ledger = Arc::clone(&ledger);
        waiters.spawn(async move { begin(&ledger, patient(1)).await });
    }
    tokio::task::yield_now().await;
    hold.release().await.unwrap();

    let first = waiters.join_next().await.unwrap().unwrap();
    owner(first).commit(answer("receipt")).await.unwrap();

    for waited in waiters.join_all().await {
        assert_eq!(completed(waited).response, answer("receipt"));
    }
}
