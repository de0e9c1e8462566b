//! What becomes of a key, and of those who joined, for each way an execution can end.

use super::*;

async fn joined_by_one(
    world: &World,
    ends: fn(u32) -> Execution<u32>,
) -> (Verdict<u32>, Verdict<u32>) {
    tokio::join!(world.request_ending("a", ends), world.request_ending("a", ends))
}

// R12, R69: an upstream that says it did nothing frees the key.
#[tokio::test(start_paused = true)]
async fn a_released_answer_is_shared_with_who_joined_and_the_next_request_runs() {
    let world = World::new();
    let (first, second) = joined_by_one(&world, |number| answered(number, 429)).await;
    assert!(matches!(first, Verdict::Passed { disposition: Disposition::Release, live: 1 }));
    assert!(matches!(&second, Verdict::Shared { .. }));
    assert_eq!(answer_of(&second), 1);
    assert_eq!(answer_of(&world.request("a").await), 2);
}

// R8, R9: an answer that does not say whether it ran is passed on, and nothing runs again.
#[tokio::test(start_paused = true)]
async fn an_ambiguous_answer_is_shared_with_who_joined_and_the_key_is_unknown() {
    let world = World::new();
    let (first, second) = joined_by_one(&world, |number| answered(number, 504)).await;
    assert!(matches!(first, Verdict::Passed { disposition: Disposition::Unknown, .. }));
    assert_eq!(answer_of(&second), 1);
    assert_eq!(refusal_of(&world.request("a").await), Refusal::OutcomeUnknown);
    assert_eq!(world.executions(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_sent_nothing_frees_the_key() {
    let world = World::new();
    let not_sent = |_: Attempt| async { Execution::<u32>::NotSent };
    let verdict = world.arbiter.judge(world.call("k", "a"), not_sent).await;
    assert_eq!(refusal_of(&verdict), Refusal::UpstreamUnreachable);
    assert_eq!(answer_of(&world.request("a").await), 1);
}

// R4, R5, R13, R14: a timeout is no answer, whoever asks again and however often.
#[tokio::test(start_paused = true)]
async fn an_execution_that_timed_out_or_broke_is_never_repeated() {
    type Ending = (fn(u32) -> Execution<u32>, Refusal);
    let endings: [Ending; 2] = [
        (|_| Execution::TimedOut, Refusal::UpstreamTimeout),
        (|_| Execution::Interrupted, Refusal::UpstreamInterrupted),
    ];
    for (ends, refusal) in endings {
        let world = World::new();
        let (first, second) = joined_by_one(&world, ends).await;
        assert_eq!((refusal_of(&first), refusal_of(&second)), (refusal, refusal));
        for _ in 0..3 {
            assert_eq!(refusal_of(&world.request("a").await), Refusal::OutcomeUnknown);
        }
        assert_eq!(world.executions(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn with_retry_another_attempt_runs_under_a_higher_token_up_to_the_bound() {
    let mut world = World::new();
    world.policy.takeover = Takeover::UpTo(2);
    let mut tokens = Vec::new();
    for number in 1..=2 {
        let (tell, told) = tokio::sync::oneshot::channel();
        let execute = move |attempt: Attempt| async move {
            attempt.gate.open().unwrap();
            tell.send((attempt.number, attempt.token)).unwrap();
            Execution::<u32>::TimedOut
        };
        let verdict = world.arbiter.judge(world.call("k", "a"), execute).await;
        assert_eq!(refusal_of(&verdict), Refusal::UpstreamTimeout);
        let (attempt, token) = told.await.unwrap();
        assert_eq!(attempt, number);
        tokens.push(token);
    }
    assert!(tokens[0] < tokens[1]);
    assert_eq!(refusal_of(&world.request("a").await), Refusal::OutcomeUnknown);
}

// A takeover that sent nothing must not wipe out that the first attempt may have run.
#[tokio::test(start_paused = true)]
async fn a_takeover_that_sent_nothing_leaves_the_key_unknown() {
    let mut world = World::new();
    world.request_ending("a", |_| Execution::TimedOut).await;
    world.policy.takeover = Takeover::UpTo(3);
    let not_sent = |_: Attempt| async { Execution::<u32>::NotSent };
    let verdict = world.arbiter.judge(world.call("k", "a"), not_sent).await;
    assert_eq!(refusal_of(&verdict), Refusal::UpstreamUnreachable);
    world.policy.takeover = Takeover::Never;
    assert_eq!(refusal_of(&world.request("a").await), Refusal::OutcomeUnknown);
    assert_eq!(world.executions(), 1);
}

// R45, R47, R48: too large to keep is not "never happened".
#[tokio::test(start_paused = true)]
async fn a_tombstone_answers_every_retry_and_nothing_runs_again() {
    let world = World::new();
    let first = world
        .request_ending("a", |live| {
            let headers = HeaderMap::new();
            let body = StoredBody::TooLarge;
            let stored = StoredResponse { status: StatusCode::OK, headers, body };
            Execution::Answered { stored, disposition: Disposition::Store, live }
        })
        .await;
    assert_eq!(answer_of(&first), 1);
    let Verdict::Replay { record, .. } = world.request("a").await else { panic!("not replayed") };
    assert!(record.response.is_tombstone());
    assert_eq!(world.executions(), 1);
}

/// The one that executes panicked after the upstream was called.
#[tokio::test(start_paused = true)]
async fn an_execution_that_panics_leaves_the_key_unknown() {
    let world = World::new();
    let verdict = world.request_ending("a", |_| panic!("on purpose")).await;
    assert_eq!(refusal_of(&verdict), Refusal::UpstreamInterrupted);
    assert_eq!(refusal_of(&world.request("a").await), Refusal::OutcomeUnknown);
    assert_eq!(world.executions(), 1);
}

// R38
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_executions_and_an_abort_leaves_them_unknown() {
    let world = World::new();
    let (verdict, ()) = tokio::join!(world.request("a"), async {
        sleep(STEP + WORK / 2).await;
        world.arbiter.idle().await;
        assert_eq!(world.arbiter.in_flight(), 0);
    });
    assert_eq!(answer_of(&verdict), 1);

    let world = World::new();
    let (verdict, ()) = tokio::join!(world.request("a"), async {
        sleep(STEP + WORK / 2).await;
        assert_eq!(world.arbiter.abort(), 1);
        world.arbiter.idle().await;
    });
    assert_eq!(refusal_of(&verdict), Refusal::Stopped);
    let other = World { arbiter: fresh_process(&world), ..world.clone() };
    assert_eq!(refusal_of(&other.request("a").await), Refusal::OutcomeUnknown);
}
