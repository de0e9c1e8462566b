//! Every order of two requests, and a crash at every moment: the upstream runs at most once.
//!
//! The ledger's steps and the upstream's work take virtual time, so a millisecond at a time covers
//! each place where one request can overtake, or be dropped within, another.

use std::future::Future;

use tokio::time::timeout;

use super::*;

/// Longer than the whole life of a request.
const LIFE: u64 = 40;

async fn at_each_millisecond<F: Future<Output = ()>>(case: impl Fn(Duration) -> F) {
    for offset in 0..LIFE {
        case(Duration::from_millis(offset)).await;
    }
}

// R25, R29
#[tokio::test(start_paused = true)]
async fn a_second_request_never_runs_whenever_it_comes() {
    at_each_millisecond(|offset| async move {
        let world = World::new();
        let second = async {
            sleep(offset).await;
            world.request("a").await
        };
        let (first, second) = tokio::join!(world.request("a"), second);
        assert_eq!((answer_of(&first), answer_of(&second)), (1, 1), "after {offset:?}");
        assert_eq!(world.executions(), 1, "second request after {offset:?}");
    })
    .await;
}

/// Two gateways in miniature: the second request does not know of the first but by the ledger.
#[tokio::test(start_paused = true)]
async fn a_second_request_of_another_arbiter_never_runs_whenever_it_comes() {
    at_each_millisecond(|offset| async move {
        let world = World::new();
        let other = World { arbiter: fresh_process(&world), ..world.clone() };
        let second = async {
            sleep(offset).await;
            other.request("a").await
        };
        let (first, second) = tokio::join!(world.request("a"), second);
        assert_eq!((answer_of(&first), answer_of(&second)), (1, 1), "after {offset:?}");
        assert_eq!(world.executions(), 1, "second request after {offset:?}");
    })
    .await;
}

// R36
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_at_any_moment_finds_its_answer_later() {
    at_each_millisecond(|offset| async move {
        let world = World::new();
        drop(timeout(offset, world.request("a")).await);
        let retry = world.request("a").await;
        assert_eq!(answer_of(&retry), 1, "left after {offset:?}");
        assert_eq!(world.executions(), 1, "left after {offset:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_leaves_at_any_moment_changes_nothing() {
    at_each_millisecond(|offset| async move {
        let world = World::new();
        let (first, _) = tokio::join!(world.request("a"), timeout(offset, world.request("a")));
        assert_eq!(answer_of(&first), 1);
        assert_eq!(answer_of(&world.request("a").await), 1);
        assert_eq!(world.executions(), 1, "left after {offset:?}");
    })
    .await;
}

// R1, R2: a gateway that stops at any moment leaves a key that is answered, free or unknown; never
// one that runs twice, and never one that is in progress for ever.
#[tokio::test(start_paused = true)]
async fn an_abort_at_any_moment_never_lets_the_request_run_twice() {
    at_each_millisecond(|offset| async move {
        let world = World::new();
        let abort = async {
            sleep(offset).await;
            world.arbiter.abort();
            let ran = world.executions();
            world.arbiter.idle().await;
            assert_eq!(world.executions(), ran, "sent after the abort after {offset:?}");
            ran
        };
        let (first, ran) = tokio::join!(world.request("a"), abort);
        let other = World { arbiter: fresh_process(&world), ..world.clone() };
        let second = other.request("a").await;
        match (first, second) {
            (Verdict::Executed { .. }, second) => assert_eq!(answer_of(&second), 1),
            (Verdict::Refused(Refusal::Stopped), Verdict::Refused(refusal)) => {
                assert_eq!((refusal, ran), (Refusal::OutcomeUnknown, 1), "after {offset:?}");
            }
            (Verdict::Refused(_), second) => {
                assert_eq!(ran, 0, "aborted after {offset:?}");
                assert_eq!(answer_of(&second), 1);
            }
            (first, second) => panic!("{first:?}, {second:?} after {offset:?}"),
        }
        assert_eq!(world.executions(), 1, "aborted after {offset:?}");
    })
    .await;
}

/// Three at once, of which one is another request: whoever is first, only its kind is answered.
#[tokio::test(start_paused = true)]
async fn of_two_different_requests_one_runs_and_the_other_is_refused() {
    at_each_millisecond(|offset| async move {
        let world = World::new();
        let different = async {
            sleep(offset).await;
            world.request("b").await
        };
        let (first, second, third) =
            tokio::join!(world.request("a"), different, world.request("a"));
        assert_eq!((answer_of(&first), answer_of(&third)), (1, 1));
        assert!(matches!(refusal_of(&second), Refusal::KeyReused(_)), "after {offset:?}");
        assert_eq!(world.executions(), 1, "different request after {offset:?}");
    })
    .await;
}
