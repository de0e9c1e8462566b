//! Requests to the servers whose replies never come, whether they were applied or not.

use crate::{
    shared::{Client, Gateway, Upstream, answer, post},
    support::{Deployment, Fate, Kind, Link, Peer, hang_up},
};

/// A gateway behind a link, one beside it, and their deployment.
struct Two {
    deployment: Deployment,
    link: Link,
    behind: Gateway,
    beside: Gateway,
}

// === impl Two ===

impl Two {
    async fn to(upstream: &Upstream) -> Self {
        Self::of(Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }")).await
    }

    async fn of(deployment: Deployment) -> Self {
        let link = Link::to(&deployment.ensemble).await;
        let (behind, beside) = (deployment.gateway_via(&link).await, deployment.gateway().await);
        Self { deployment, link, behind, beside }
    }

    async fn leave_no_lock(&self) {
        let mut peer = Peer::of(&self.deployment.ensemble);
        let free = async { while !self.deployment.locks(&mut peer).await.is_empty() {} };
        crate::shared::soon("no lock to be left", free).await;
    }
}

const LOST: [Fate; 2] = [Fate::RequestLost, Fate::ReplyLost];

// R28, Z2, Z15, Z27
#[tokio::test]
async fn a_begin_or_commit_whose_reply_is_lost_is_found_out_and_the_client_sees_nothing() {
    let upstream = Upstream::start();
    let two = Two::to(&upstream).await;
    for kind in [Kind::Begin, Kind::Commit] {
        for fate in LOST {
            let key = format!("{kind:?}-{fate:?}");
            two.link.next(kind, fate);
            let first = two.behind.ask(&post(&key)).await;
            assert_eq!((first.status, first.is_replay()), (201, false), "{key}: {first:?}");
            two.link.happened().await;
            let retry = two.beside.ask(&post(&key)).await;
            assert!(retry.is_replay(), "{key}: {retry:?}");
            assert_eq!(retry.lasting(), first.lasting(), "{key}");
            assert_eq!(upstream.executions(&key), 1, "{key}");
        }
    }
    two.leave_no_lock().await;
}

#[tokio::test]
async fn a_release_whose_reply_is_lost_frees_the_key_once() {
    let upstream = Upstream::always(answer("429 Too Many Requests", "", "later"));
    let two = Two::to(&upstream).await;
    for fate in LOST {
        let key = format!("{fate:?}");
        two.link.next(Kind::Release, fate);
        assert_eq!(two.behind.ask(&post(&key)).await.status, 429, "{key}");
        two.link.happened().await;
        assert_eq!(two.beside.ask(&post(&key)).await.status, 429, "{key}");
        assert_eq!(upstream.executions(&key), 2, "{key}");
    }
    two.leave_no_lock().await;
}

#[tokio::test]
async fn an_abandon_whose_reply_is_lost_leaves_the_key_unknown() {
    let upstream = Upstream::always(answer("502 Bad Gateway", "", "perhaps"));
    let two = Two::to(&upstream).await;
    for fate in LOST {
        let key = format!("{fate:?}");
        two.link.next(Kind::Commit, fate);
        assert_eq!(two.behind.ask(&post(&key)).await.status, 502, "{key}");
        two.link.happened().await;
        let retry = two.beside.ask(&post(&key)).await;
        assert_eq!((retry.status, retry.code()), (409, "outcome-unknown".into()), "{key}");
        assert_eq!(upstream.executions(&key), 1, "{key}");
    }
    two.leave_no_lock().await;
}

#[tokio::test]
async fn a_waiters_node_whose_reply_is_lost_is_found_again_or_made_again() {
    for fate in LOST {
        let upstream = Upstream::holding();
        let two = Two::to(&upstream).await;
        let mut holder = Client::connect(two.beside.address).await;
        holder.send(&post("k")).await;
        upstream.received(1).await;
        two.link.next(Kind::Contend, fate);
        let mut waiter = Client::connect(two.behind.address).await;
        waiter.send(&post("k")).await;
        two.link.happened().await;
        upstream.go();

        assert_eq!(holder.answer().await.status, 201, "{fate:?}");
        assert!(waiter.answer().await.is_replay(), "{fate:?}");
        assert_eq!(upstream.count(), 1, "{fate:?}");
        two.leave_no_lock().await;
    }
}

#[tokio::test]
async fn a_takeover_whose_reply_is_lost_runs_once() {
    for fate in LOST {
        let upstream = Upstream::holding();
        let deployment = Deployment::to(upstream.address)
            .await
            .rules("in_progress: { wait: 20s }, unknown_outcome: retry");
        let two = Two::of(deployment).await;
        let mut client = Client::connect(two.beside.address).await;
        client.send(&post("k")).await;
        upstream.received(1).await;
        upstream.now(|_| answer("201 Created", "", "second"));
        two.link.next(Kind::BeginUnderLock, fate);
        let Two { deployment, link, behind, beside } = two;
        beside.kill();

        let answer = behind.ask(&post("k")).await;

        assert_eq!((answer.status, &*answer.body), (201, &b"second"[..]), "{fate:?}");
        link.happened().await;
        assert_eq!(upstream.count(), 2, "{fate:?}");
        assert!(deployment.gateway().await.ask(&post("k")).await.is_replay(), "{fate:?}");
    }
}

// Z1, Z3, Z4
#[tokio::test]
async fn a_client_that_leaves_while_the_begin_is_in_doubt_leaves_no_lock() {
    let upstream = Upstream::start();
    let two = Two::to(&upstream).await;
    two.link.next(Kind::Begin, Fate::ReplyHeld);
    let mut client = Client::connect(two.behind.address).await;
    client.send(&post("k")).await;
    two.link.holds().await;
    hang_up(client);
    two.link.let_go();

    two.leave_no_lock().await;
    assert_eq!(two.beside.ask(&post("k")).await.status, 201);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_commit_that_was_applied_is_replayed_though_its_session_ended_before_the_reply() {
    let upstream = Upstream::start();
    let two = Two::to(&upstream).await;
    two.link.next(Kind::Commit, Fate::ReplyHeld);
    let mut client = Client::connect(two.behind.address).await;
    client.send(&post("k")).await;
    two.link.holds().await;
    two.link.stall();

    let answer = client.answer().await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.json()["outcome"], "unknown");
    assert_eq!(answer.json()["retry_same_key"], true);
    let retry = two.beside.ask(&post("k")).await;
    assert_eq!((retry.status, retry.is_replay()), (201, true));
    assert_eq!(upstream.count(), 1);
}
