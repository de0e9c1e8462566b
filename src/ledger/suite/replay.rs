//! The stored answer is the only one, until its retention ends.

use std::time::Duration;

use super::{
    Harness,
    requests::{COMPLETED, answer, begin, completed, executing, other, owner, request},
};
use crate::{
    domain::{StoredBody, StoredResponse},
    ledger::{Begun, Ended, KeyState},
};

pub(in crate::ledger) async fn an_answer_is_replayed_byte_for_byte<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = executing(&ledger, request(1)).await;
    let (token, attempt) = (hold.token(), hold.attempt());

    let Ended::Completed(told) = hold.commit(answer("receipt")).await.unwrap() else {
        panic!("the key is completed")
    };

    for _ in 0..3 {
        let record = completed(begin(&ledger, request(1)).await);
        assert_eq!(record, told);
        assert_eq!(record.response, answer("receipt"));
        assert_eq!((record.token, record.attempt), (token, attempt));
        assert_eq!(record.expires_at, record.completed_at.after(COMPLETED));
    }
}

// R47, R48
pub(in crate::ledger) async fn a_tombstone_is_replayed_as_one<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = executing(&ledger, request(1)).await;
    let tombstone = StoredResponse { body: StoredBody::TooLarge, ..answer("") };
    hold.commit(tombstone.clone()).await.unwrap();

    assert_eq!(completed(begin(&ledger, request(1)).await).response, tombstone);
}

pub(in crate::ledger) async fn an_answer_is_replayed_until_its_retention_ends<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    executing(&ledger, request(1)).await.commit(answer("receipt")).await.unwrap();

    harness.advance(COMPLETED.saturating_sub(Duration::from_millis(50))).await;

    completed(begin(&ledger, request(1)).await);
}

pub(in crate::ledger) async fn another_request_is_refused_by_a_completed_key<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    executing(&ledger, request(1)).await.commit(answer("receipt")).await.unwrap();

    let begun = begin(&ledger, other(1)).await;

    assert!(matches!(begun, Begun::FingerprintMismatch(KeyState::Completed)));
    completed(begin(&ledger, request(1)).await);
}

pub(in crate::ledger) async fn a_key_begins_anew_after_its_retention<H: Harness>() {
    let harness = H::start().await;
    let ledger = harness.ledger();
    let hold = executing(&ledger, request(1)).await;
    let token = hold.token();
    hold.commit(answer("first")).await.unwrap();

    harness.advance(COMPLETED).await;

    // It is a new life: even another request is welcome.
    let hold = executing(&ledger, other(1)).await;
    assert_eq!(hold.attempt(), 1);
    assert!(hold.token() > token);
    hold.commit(answer("second")).await.unwrap();
    assert_eq!(completed(begin(&ledger, other(1)).await).response, answer("second"));
    // R26: nothing of the former life takes the new one away.
    owner(begin(&ledger, request(2)).await);
    completed(begin(&ledger, other(1)).await);
}
