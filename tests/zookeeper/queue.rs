//! The queue for a key's lock: who is before whom, and what vanishes from it.

use rustix::process::Signal;
use tokio::time::Instant;

use crate::{
    crash::pause,
    shared::{Client, Gateway, Step, Upstream, answer, post, soon},
    support::{Deployment, Fate, Kind, Link, Peer, show},
};

/// The lock nodes in the order of the queue, once there are so many.
async fn queue(deployment: &Deployment, peer: &mut Peer, length: usize) -> Vec<String> {
    let standing = async {
        loop {
            let mut locks = deployment.locks(peer).await;
            if locks.len() == length {
                locks.sort_by_key(|lock| lock.rsplit_once("-lock-").unwrap().1.to_owned());
                return locks;
            }
        }
    };
    soon("the queue", standing).await
}

/// A request of this gateway, sent.
async fn send(gateway: &Gateway, key: &str) -> Client {
    let mut client = Client::connect(gateway.address).await;
    client.send(&post(key)).await;
    client
}

// Z10, Z31
#[tokio::test]
async fn a_waiter_whose_predecessor_vanishes_keeps_its_node_and_waits_for_the_one_before() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let (holder, second, third) =
        (deployment.gateway().await, deployment.gateway().await, deployment.gateway().await);
    let mut peer = Peer::of(&deployment.ensemble);
    let mut first = send(&holder, "k").await;
    upstream.received(1).await;
    let mut middle = send(&second, "k").await;
    queue(&deployment, &mut peer, 2).await;
    let mut last = send(&third, "k").await;
    let locks = queue(&deployment, &mut peer, 3).await;
    deployment.ensemble.watched(&locks[1]).await;
    peer.delete(&locks[1]).await;

    third.metric_is("zk_watch_notifications_total", &[], 1.0).await;
    assert_eq!(queue(&deployment, &mut peer, 2).await, [locks[0].clone(), locks[2].clone()]);
    assert_eq!(upstream.count(), 1);
    upstream.go();

    assert_eq!(first.answer().await.status, 201);
    assert!(last.answer().await.is_replay());
    // Its own node is gone: it never runs, and is told so.
    let answer = middle.answer().await;
    assert_eq!((answer.status, answer.code()), (503, "ledger-unavailable".into()));
    assert_eq!(upstream.count(), 1);
    queue(&deployment, &mut peer, 0).await;
}

// Z14
#[tokio::test]
async fn a_holder_that_ends_while_the_watch_on_it_is_made_wakes_the_waiter_at_once() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) = (deployment.gateway().await, deployment.gateway_via(&link).await);
    let mut first = send(&holder, "k").await;
    upstream.received(1).await;
    link.next(Kind::Watch, Fate::ReplyHeld);
    let mut second = send(&other, "k").await;
    link.holds().await;
    upstream.go();
    assert_eq!(first.answer().await.status, 201);
    link.let_go();
    let let_go = Instant::now();

    assert!(second.answer().await.is_replay());

    let taken = let_go.elapsed();
    show(&format!("a waiter went on {taken:?} after its watch"));
    assert!(taken < std::time::Duration::from_secs(1), "{taken:?}");
    assert_eq!(upstream.count(), 1);
}

// Z38
#[tokio::test]
async fn a_holder_whose_key_was_made_anew_does_not_end_its_successors_attempt() {
    let upstream = Upstream::scripted(|received| {
        let token = received.header("idempotency-fencing-token").unwrap().to_owned();
        let mut script = vec![Step::Wait];
        script.extend(answer("201 Created", "", token));
        script
    });
    let deployment = Deployment::to(upstream.address).await;
    let (former, successor) = (deployment.gateway().await, deployment.gateway().await);
    let mut peer = Peer::of(&deployment.ensemble);
    let mut first = send(&former, "k").await;
    upstream.received(1).await;
    // Someone takes away the whole key while it is held: its numbers start again.
    let [old] = &queue(&deployment, &mut peer, 1).await[..] else { panic!("one lock") };
    for node in [old, &deployment.record("k"), &deployment.path("k")] {
        peer.delete(node).await;
    }
    let mut second = send(&successor, "k").await;
    upstream.received(2).await;
    let [new] = &queue(&deployment, &mut peer, 1).await[..] else { panic!("one lock") };
    let number = |lock: &str| lock.rsplit_once("-lock-").unwrap().1.to_owned();
    assert_eq!(number(old), number(new));
    assert_ne!(old, new);
    let tokens = upstream.all();
    let tokens: Vec<u64> = tokens
        .iter()
        .map(|call| call.header("idempotency-fencing-token").unwrap().parse().unwrap())
        .collect();
    assert!(tokens[0] < tokens[1], "{tokens:?}");
    upstream.go();

    let answer = first.answer().await;
    assert_eq!((answer.status, answer.json()["outcome"].clone()), (503, "unknown".into()));
    assert_eq!(queue(&deployment, &mut peer, 1).await, std::slice::from_ref(new));
    upstream.go();
    let answer = second.answer().await;
    assert_eq!((answer.status, answer.body), (201, tokens[1].to_string().into_bytes()));
    let replay = former.ask(&post("k")).await;
    assert_eq!((replay.is_replay(), replay.body), (true, tokens[1].to_string().into_bytes()));
    assert_eq!(upstream.count(), 2);
}

// Z40
#[tokio::test]
async fn a_waiter_whose_turn_comes_while_its_session_ends_does_not_run() {
    let upstream = Upstream::scripted(|_| {
        let mut script = vec![Step::Wait];
        script.extend(answer("429 Slow Down", "", "later"));
        script
    });
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let (holder, other) = (deployment.gateway().await, deployment.gateway().await);
    let mut peer = Peer::of(&deployment.ensemble);
    let mut first = send(&holder, "k").await;
    upstream.received(1).await;
    let mut second = send(&other, "k").await;
    let locks = queue(&deployment, &mut peer, 2).await;
    deployment.ensemble.watched(&locks[0]).await;
    pause(&other).await;
    // Its turn comes, and passes with its session, before it can look.
    upstream.go();
    assert_eq!(first.answer().await.status, 429);
    peer.gone(&locks[1]).await;
    other.signal(Signal::CONT);

    let answer = second.answer().await;
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()), "{answer:?}");
    assert_eq!(answer.json()["retry_same_key"], true);
    assert_eq!(upstream.count(), 1);
    upstream.go();
    assert_eq!(other.ask(&post("k")).await.status, 429);
    assert_eq!(upstream.count(), 2);
}
