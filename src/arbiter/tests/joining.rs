//! Many requests, one execution.

use tokio::{
    task::JoinSet,
    time::{advance, timeout},
};

use super::*;
use crate::ledger::KeyState;

// R25, R33: no duplicate executes, and none is told anything but the answer.
#[tokio::test(start_paused = true)]
async fn a_hundred_duplicates_at_once_are_one_execution_and_one_answer() {
    let world = World::new();
    let mut requests = JoinSet::new();
    for _ in 0..100 {
        let world = world.clone();
        requests.spawn(async move { world.request("a").await });
    }
    let verdicts = requests.join_all().await;
    assert_eq!(world.executions(), 1);
    assert!(verdicts.iter().all(|verdict| answer_of(verdict) == 1));
    let executed = |verdict: &&Verdict<u32>| matches!(verdict, Verdict::Executed { .. });
    assert_eq!(verdicts.iter().filter(executed).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_gets_the_stored_answer() {
    let world = World::new();
    world.request("a").await;
    let retry = world.request("a").await;
    assert!(matches!(retry, Verdict::Replay { joined: false, .. }));
    assert_eq!(answer_of(&retry), 1);
    assert_eq!(world.executions(), 1);
}

// R54, R57
#[tokio::test(start_paused = true)]
async fn a_different_request_is_refused_while_the_first_runs_and_afterwards() {
    let world = World::new();
    let during = async {
        sleep(STEP + WORK / 2).await;
        world.request("b").await
    };
    let (first, during) = tokio::join!(world.request("a"), during);
    assert_eq!(answer_of(&first), 1);
    assert_eq!(refusal_of(&during), Refusal::KeyReused(KeyState::InProgress));
    let after = world.request("b").await;
    assert_eq!(refusal_of(&after), Refusal::KeyReused(KeyState::Completed));
    assert_eq!(world.executions(), 1);
}

/// The wrong request leads in this process, but the ledger knows the right one: whoever is equal
/// to what is stored is answered, whichever of the two came first here.
#[tokio::test(start_paused = true)]
async fn a_wrong_request_that_came_first_does_not_refuse_the_right_one() {
    let world = World::new();
    world.request("right").await;
    // Another process: the same ledger, nothing cached.
    let other = World { arbiter: fresh_process(&world), ..world.clone() };
    let (wrong, right) = tokio::join!(other.request("wrong"), other.request("right"));
    assert_eq!(refusal_of(&wrong), Refusal::KeyReused(KeyState::Completed));
    assert_eq!(answer_of(&right), 1);
    assert_eq!(world.executions(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_follower_is_refused_after_exactly_its_wait() {
    let mut world = World::new();
    world.wait = Some(WORK / 2);
    let started = Instant::now();
    let follower = async {
        let verdict = world.request("a").await;
        (verdict, started.elapsed())
    };
    let (first, (second, waited)) = tokio::join!(world.request("a"), follower);
    assert_eq!(answer_of(&first), 1);
    assert_eq!(refusal_of(&second), Refusal::InProgress);
    assert_eq!(waited, WORK / 2);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_may_not_wait_is_refused_once_the_first_is_the_owner() {
    let mut world = World::new();
    world.wait = None;
    let started = Instant::now();
    let follower = async {
        let verdict = world.request("a").await;
        (verdict, started.elapsed())
    };
    let (_, (second, waited)) = tokio::join!(world.request("a"), follower);
    assert_eq!(refusal_of(&second), Refusal::InProgress);
    assert!(waited < WORK, "it learned it only after {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_over_the_bound_is_refused_and_the_others_are_answered() {
    let world = World::with_waiters(2);
    let (first, second, third, fourth) = tokio::join!(
        world.request("a"),
        world.request("a"),
        world.request("a"),
        world.request("a"),
    );
    assert!([first, second, third].iter().all(|verdict| answer_of(verdict) == 1));
    assert_eq!(refusal_of(&fourth), Refusal::TooManyWaiters);
}

/// "Send the right request" helps; "come back later" would not.
#[tokio::test(start_paused = true)]
async fn a_different_request_is_told_so_however_many_wait() {
    let world = World::with_waiters(1);
    let different = async {
        sleep(STEP * 3 + WORK / 2).await;
        world.request("b").await
    };
    let (_, _, different) = tokio::join!(world.request("a"), world.request("a"), different);
    assert_eq!(refusal_of(&different), Refusal::KeyReused(KeyState::InProgress));
}

// R36, R37: the client's abort cancels neither the execution nor the store.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_client_hangs_up_still_answers_the_retry() {
    let world = World::new();
    let hung_up = timeout(STEP + WORK / 2, world.request("a")).await;
    assert!(hung_up.is_err());
    let retry = world.request("a").await;
    assert_eq!(answer_of(&retry), 1);
    assert_eq!(world.executions(), 1);
}

/// The permit belongs to the execution: a client that hangs up makes no room for another one.
#[tokio::test(start_paused = true)]
async fn a_permit_lives_as_long_as_the_execution_and_not_as_its_client() {
    let world = World::new();
    assert!(timeout(STEP + WORK / 2, world.request("a")).await.is_err());
    assert_eq!(world.permits.taken(), 1);
    world.arbiter.idle().await;
    assert_eq!(world.permits.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_until_its_retention_ends_and_then_the_request_runs_again() {
    let world = World::new();
    world.request("a").await;
    let completed = world.policy.retention.completed;
    advance(completed.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!(answer_of(&world.request("a").await), 1);
    advance(Duration::from_secs(2)).await;
    assert_eq!(answer_of(&world.request("a").await), 2);
}
