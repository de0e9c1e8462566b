//! What an operator sees, and decides about keys whose outcome is unknown.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio_test::task;

use super::{
    Harness,
    requests::{
        COMPLETED, UNKNOWN, answer, begin, completed, executing, other, owner, patient, request,
        takeover, unknown,
    },
};
use crate::{
    domain::{Cause, FencingToken, KeyId, Retention},
    ledger::{Begin, Begun, DecideError, Ended, Entry, KeyState, Ledger, Operator, Query},
};

/// A harness whose ledger has an operator's side.
pub(in crate::ledger) trait OperatorHarness: Harness {
    fn operator(&self) -> Arc<dyn Operator>;
}

/// How long a call of the upstream takes at most.
pub(in crate::ledger) const CALL: Duration = Duration::from_secs(30);

const KEY: KeyId = KeyId::from_bytes([1; 32]);

/// Leaves key number `key` unknown, and gives the token of its attempt.
pub(in crate::ledger) async fn left_unknown(ledger: &Arc<dyn Ledger>, key: u8) -> FencingToken {
    let hold = executing(ledger, request(key)).await;
    let token = hold.token();
    assert!(matches!(hold.abandon(Cause::TimedOut).await, Ok(Ended::Unknown)));
    token
}

async fn start<H: OperatorHarness>() -> (H, Arc<dyn Ledger>, Arc<dyn Operator>) {
    let harness = H::start().await;
    let (ledger, operator) = (harness.ledger(), harness.operator());
    (harness, ledger, operator)
}

pub(in crate::ledger) async fn a_resolved_key_gives_the_operators_answer<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    let token = left_unknown(&ledger, 1).await;

    let record = operator.resolve(KEY, answer("by hand")).await.unwrap();

    assert_eq!((record.attempt, record.token), (1, token));
    for _ in 0..2 {
        assert_eq!(completed(begin(&ledger, request(1)).await), record);
        assert_eq!(completed(begin(&ledger, takeover(1, 9)).await).response, answer("by hand"));
        let another = begin(&ledger, other(1)).await;
        assert!(matches!(another, Begun::FingerprintMismatch(KeyState::Completed)));
    }
}

pub(in crate::ledger) async fn a_resolved_key_is_kept_from_the_decision_on<H: OperatorHarness>() {
    let (harness, ledger, operator) = start::<H>().await;
    // The decision expires in the very millisecond in which the attempt would have.
    let retention = Retention { completed: COMPLETED, unknown: Some(COMPLETED) };
    let hold = executing(&ledger, Begin { retention, ..request(1) }).await;
    hold.abandon(Cause::TimedOut).await.unwrap();
    left_unknown(&ledger, 2).await;
    harness.advance(COMPLETED / 2).await;

    for key in [1, 2] {
        let key = KeyId::from_bytes([key; 32]);
        let record = operator.resolve(key, answer("by hand")).await.unwrap();
        assert_eq!(record.expires_at, record.completed_at.after(COMPLETED));
    }

    harness.advance(COMPLETED.saturating_sub(Duration::from_millis(50))).await;
    completed(begin(&ledger, request(1)).await);
    completed(begin(&ledger, request(2)).await);
    harness.advance(Duration::from_millis(50)).await;
    assert_eq!(owner(begin(&ledger, other(1)).await).attempt(), 1);
}

pub(in crate::ledger) async fn a_released_key_begins_a_new_life<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    let token = left_unknown(&ledger, 1).await;

    operator.release(KEY).await.unwrap();

    assert_eq!(operator.show(KEY).await.unwrap(), None);
    // Even another request is welcome, and nothing of the life before holds it up.
    let hold = executing(&ledger, other(1)).await;
    assert_eq!(hold.attempt(), 1);
    assert!(hold.token() > token);
    assert!(matches!(hold.release().await, Ok(Ended::Released)));
    let hold = executing(&ledger, request(1)).await;
    hold.commit(answer("receipt")).await.unwrap();
    assert_eq!(completed(begin(&ledger, request(1)).await).response, answer("receipt"));
}

pub(in crate::ledger) async fn a_held_key_is_not_decided_about<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    let hold = executing(&ledger, request(1)).await;

    let resolved = operator.resolve(KEY, answer("by hand")).await;
    let released = operator.release(KEY).await;
    let forced = operator.force(KEY, CALL).await;

    assert!(matches!(resolved, Err(DecideError::InProgress)), "{resolved:?}");
    assert!(matches!(released, Err(DecideError::InProgress)), "{released:?}");
    assert!(matches!(forced, Err(DecideError::NotForced { .. })), "{forced:?}");
    hold.commit(answer("receipt")).await.unwrap();
    assert_eq!(completed(begin(&ledger, request(1)).await).response, answer("receipt"));
}

pub(in crate::ledger) async fn a_takeover_under_way_is_not_decided_about<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    left_unknown(&ledger, 1).await;
    let hold = executing(&ledger, takeover(1, 2)).await;

    assert!(matches!(operator.release(KEY).await, Err(DecideError::InProgress)));
    hold.abandon(Cause::Interrupted).await.unwrap();

    operator.release(KEY).await.unwrap();
}

pub(in crate::ledger) async fn a_completed_key_is_not_decided_about<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    executing(&ledger, request(1)).await.commit(answer("receipt")).await.unwrap();
    left_unknown(&ledger, 2).await;
    let second = KeyId::from_bytes([2; 32]);
    operator.resolve(second, answer("by hand")).await.unwrap();

    for (key, said) in [(KEY, "receipt"), (second, "by hand")] {
        let resolved = operator.resolve(key, answer("another")).await;
        assert!(matches!(resolved, Err(DecideError::Completed)), "{resolved:?}");
        assert!(matches!(operator.release(key).await, Err(DecideError::Completed)));
        assert!(matches!(operator.force(key, CALL).await, Err(DecideError::Completed)));
        let number = key.as_bytes()[0];
        assert_eq!(completed(begin(&ledger, request(number)).await).response, answer(said));
    }
}

pub(in crate::ledger) async fn an_absent_key_is_not_decided_about<H: OperatorHarness>() {
    let (harness, ledger, operator) = start::<H>().await;
    left_unknown(&ledger, 1).await;
    operator.release(KEY).await.unwrap();
    left_unknown(&ledger, 2).await;
    executing(&ledger, request(3)).await.commit(answer("receipt")).await.unwrap();
    harness.advance(UNKNOWN).await;

    for key in [1, 2, 3, 4] {
        let key = KeyId::from_bytes([key; 32]);
        assert_eq!(operator.show(key).await.unwrap(), None);
        let resolved = operator.resolve(key, answer("by hand")).await;
        assert!(matches!(resolved, Err(DecideError::Absent)), "{resolved:?}");
        assert!(matches!(operator.release(key).await, Err(DecideError::Absent)));
        assert!(matches!(operator.force(key, CALL).await, Err(DecideError::Absent)));
    }
}

pub(in crate::ledger) async fn a_key_that_is_unknown_is_not_forced<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    left_unknown(&ledger, 1).await;

    assert!(matches!(operator.force(KEY, CALL).await, Err(DecideError::NotHeld)));

    unknown(begin(&ledger, request(1)).await);
}

pub(in crate::ledger) async fn of_decisions_that_meet_one_is_made<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    left_unknown(&ledger, 1).await;

    let (resolved, released, again) = tokio::join!(
        operator.resolve(KEY, answer("by hand")),
        operator.release(KEY),
        operator.release(KEY),
    );

    let made = [resolved.is_ok(), released.is_ok(), again.is_ok()];
    assert_eq!(made.into_iter().filter(|made| *made).count(), 1, "{made:?}");
    if resolved.is_ok() {
        completed(begin(&ledger, request(1)).await);
    } else {
        owner(begin(&ledger, request(1)).await);
    }
}

pub(in crate::ledger) async fn a_retry_that_meets_a_resolve_never_runs<H: OperatorHarness>() {
    for _ in 0..20 {
        let (_harness, ledger, operator) = start::<H>().await;
        left_unknown(&ledger, 1).await;

        let (retried, resolved) =
            tokio::join!(begin(&ledger, patient(1)), operator.resolve(KEY, answer("by hand")));

        resolved.unwrap();
        assert!(matches!(retried, Begun::Unknown(_) | Begun::Completed(_)), "{retried:?}");
        completed(begin(&ledger, request(1)).await);
    }
}

pub(in crate::ledger) async fn a_takeover_that_meets_a_decision_excludes_it<H: OperatorHarness>() {
    for _ in 0..20 {
        let (_harness, ledger, operator) = start::<H>().await;
        left_unknown(&ledger, 1).await;

        let (taken, resolved) =
            tokio::join!(begin(&ledger, takeover(1, 2)), operator.resolve(KEY, answer("by hand")));

        match taken {
            Begun::Owner(hold) => {
                assert!(matches!(resolved, Err(DecideError::InProgress)), "{resolved:?}");
                assert_eq!(hold.attempt(), 2);
                hold.gate().open().unwrap();
                hold.commit(answer("receipt")).await.unwrap();
                assert_eq!(completed(begin(&ledger, request(1)).await).response, answer("receipt"));
            }
            Begun::Completed(record) => {
                assert_eq!(resolved.unwrap(), record);
            }
            // The decision was first in the queue for the lock.
            Begun::InProgress => drop(resolved.unwrap()),
            Begun::FingerprintMismatch(_) | Begun::Unknown(_) => {
                panic!("{taken:?} beside {resolved:?}")
            }
        }
    }
}

pub(in crate::ledger) async fn a_decision_that_was_dropped_is_made_or_not<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    left_unknown(&ledger, 1).await;

    let mut resolving = task::spawn(operator.resolve(KEY, answer("by hand")));
    drop(resolving.poll());
    drop(resolving);

    match begin(&ledger, patient(1)).await {
        Begun::Completed(record) => assert_eq!(record.response, answer("by hand")),
        // The dropped one may still be on its way.
        Begun::Unknown(_) => match operator.resolve(KEY, answer("by hand")).await {
            Ok(_) | Err(DecideError::Completed) => {
                let record = completed(begin(&ledger, request(1)).await);
                assert_eq!(record.response, answer("by hand"));
            }
            Err(error) => panic!("{error:?}"),
        },
        begun @ (Begun::Owner(_) | Begun::FingerprintMismatch(_) | Begun::InProgress) => {
            panic!("{begun:?}")
        }
    }
}

pub(in crate::ledger) async fn decisions_outlive_a_crash<H: OperatorHarness>() {
    let (harness, ledger, operator) = start::<H>().await;
    if !harness.is_durable() {
        return;
    }
    left_unknown(&ledger, 1).await;
    let token = left_unknown(&ledger, 2).await;
    let record = operator.resolve(KEY, answer("by hand")).await.unwrap();
    operator.release(KeyId::from_bytes([2; 32])).await.unwrap();

    let harness = harness.crash().await;

    assert_eq!(completed(begin(&harness.ledger(), request(1)).await), record);
    let hold = owner(begin(&harness.ledger(), request(2)).await);
    assert_eq!(hold.attempt(), 1);
    assert!(hold.token() > token);
}

pub(in crate::ledger) async fn a_key_whose_holder_crashed_can_be_released<H: OperatorHarness>() {
    let harness = H::start().await;
    if !harness.is_durable() {
        return;
    }
    let hold = executing(&harness.ledger(), request(1)).await;

    let harness = harness.crash().await;
    let entry = harness.operator().show(KEY).await.unwrap().unwrap();
    assert_eq!((entry.state, entry.cause), (KeyState::Unknown, Some(Cause::HolderGone)));
    harness.operator().release(KEY).await.unwrap();

    assert!(owner(begin(&harness.ledger(), request(1)).await).token() > hold.token());
}

pub(in crate::ledger) async fn a_key_is_shown_as_it_is<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    let shown = async || operator.show(KEY).await.unwrap();
    assert_eq!(shown().await, None);

    let hold = executing(&ledger, request(1)).await;
    let entry = shown().await.unwrap();
    assert_eq!((entry.state, entry.attempt, entry.token), (KeyState::InProgress, 1, hold.token()));
    assert_eq!((&*entry.origin.route, entry.expires_at), ("charges", None));

    hold.abandon(Cause::TimedOut).await.unwrap();
    let entry = shown().await.unwrap();
    assert_eq!((entry.state, entry.cause), (KeyState::Unknown, Some(Cause::TimedOut)));
    assert_eq!(entry.expires_at, Some(entry.since.after(UNKNOWN)));
    assert_eq!(entry.answer, None);

    executing(&ledger, takeover(1, 2)).await.commit(answer("receipt")).await.unwrap();
    let entry = shown().await.unwrap();
    assert_eq!((entry.state, entry.attempt), (KeyState::Completed, 2));
    assert_eq!(entry.expires_at, Some(entry.since.after(COMPLETED)));
    let answer = entry.answer.unwrap();
    assert_eq!((answer.status.as_u16(), answer.body), (201, Some(7)));
    assert_eq!(answer.headers.len(), 3);
}

pub(in crate::ledger) async fn every_key_is_listed_once_over_all_pages<H: OperatorHarness>() {
    let (_harness, ledger, operator) = start::<H>().await;
    let mut holds = Vec::new();
    for key in 0..12 {
        match key % 3 {
            0 => holds.push(executing(&ledger, request(key)).await),
            1 => drop(left_unknown(&ledger, key).await),
            _ => {
                let hold = executing(&ledger, request(key)).await;
                hold.commit(answer("receipt")).await.unwrap();
            }
        }
    }
    let states = [KeyState::InProgress, KeyState::Unknown, KeyState::Completed];
    for limit in [1, 2, 3, 100] {
        let all = listed(&*operator, Query { limit, ..Query::default() }).await;
        assert_eq!(all.len(), 12, "{limit} a page");
        for (number, state) in (0..).zip(states) {
            let query = Query { state: Some(state), limit, ..Query::default() };
            let keys = listed(&*operator, query).await;
            assert!(keys.iter().all(|entry| entry.state == state));
            let numbers: BTreeSet<u8> = keys.iter().map(|key| key.key.as_bytes()[0]).collect();
            let wanted: BTreeSet<u8> = (0..12).filter(|key| key % 3 == number).collect();
            assert_eq!(numbers, wanted, "{state:?}, {limit} a page");
        }
        let route = Some("elsewhere".to_owned());
        assert!(listed(&*operator, Query { route, limit, ..Query::default() }).await.is_empty());
        let route = Some("charges".to_owned());
        assert_eq!(listed(&*operator, Query { route, limit, ..Query::default() }).await.len(), 12);
    }
    let query = Query { limit: 1, after: Some("nonsense".into()), ..Query::default() };
    operator.list(query).await.unwrap_err();
}

pub(in crate::ledger) async fn what_is_over_or_released_is_not_listed<H: OperatorHarness>() {
    let (harness, ledger, operator) = start::<H>().await;
    executing(&ledger, request(1)).await.commit(answer("receipt")).await.unwrap();
    for key in [2, 3, 4] {
        left_unknown(&ledger, key).await;
    }
    harness.advance(COMPLETED).await;
    operator.release(KeyId::from_bytes([2; 32])).await.unwrap();
    operator.resolve(KeyId::from_bytes([3; 32]), answer("by hand")).await.unwrap();

    let all = listed(&*operator, Query { limit: 10, ..Query::default() }).await;

    let mut all: Vec<_> = all.iter().map(|entry| (entry.key.as_bytes()[0], entry.state)).collect();
    all.sort_unstable_by_key(|(key, _)| *key);
    assert_eq!(all, [(3, KeyState::Completed), (4, KeyState::Unknown)]);
}

/// All pages. No key stands on two of them.
async fn listed(operator: &dyn Operator, mut query: Query) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let page = operator.list(query.clone()).await.unwrap();
        assert!(page.entries.len() <= query.limit && page.unreadable.is_empty());
        entries.extend(page.entries);
        let Some(next) = page.next else { break };
        query.after = Some(next);
    }
    let keys: BTreeSet<_> = entries.iter().map(|entry| entry.key).collect();
    assert_eq!(keys.len(), entries.len());
    entries
}
