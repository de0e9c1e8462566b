//! Services of other languages that lock the same nodes, with kazoo in their place.

use crate::{
    shared::{Client, Upstream, post, soon},
    support::{Deployment, Fate, Kind, Link, Peer},
};

#[tokio::test]
async fn a_foreign_client_waits_until_the_answer_is_stored() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await;
    let gateway = deployment.gateway().await;
    let key = post("k");
    let mut client = Client::connect(gateway.address).await;
    client.send(&key).await;
    upstream.received(1).await;
    let (mut foreign, mut reader) =
        (Peer::of(&deployment.ensemble), Peer::of(&deployment.ensemble));
    let intent = reader.get(&deployment.record("k")).await.unwrap();
    foreign.contend(&deployment.path("k")).await;
    let both = async { while deployment.locks(&mut reader).await.len() < 2 {} };
    soon("the foreign node", both).await;
    assert!(foreign.is_waiting());
    upstream.go();

    foreign.acquired().await;
    let stored = reader.get(&deployment.record("k")).await.unwrap();
    assert_ne!(stored.data, intent.data, "the answer was stored when the lock was let go");
    assert_eq!(client.answer().await.status, 201);
    // A completed key is replayed whoever locks it.
    assert!(deployment.gateway().await.ask(&key).await.is_replay());
    foreign.release().await;
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_request_waits_for_the_lock_of_a_foreign_client() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let gateway = deployment.gateway().await;
    let key = post("k");
    let (mut foreign, mut reader) =
        (Peer::of(&deployment.ensemble), Peer::of(&deployment.ensemble));
    foreign.acquire(&deployment.path("k")).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&key).await;
    let both = async { while deployment.locks(&mut reader).await.len() < 2 {} };
    soon("the gateway's node", both).await;
    assert!(reader.get(&deployment.record("k")).await.is_err(), "no intent before its turn");
    assert_eq!(upstream.count(), 0);
    foreign.release().await;

    assert_eq!(client.answer().await.status, 201);
    assert_eq!(upstream.count(), 1);
    assert_eq!(deployment.locks(&mut reader).await, <[String; 0]>::default());
}

#[tokio::test]
async fn foreign_clients_and_gateways_take_turns_in_the_order_of_their_nodes() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let gateway = deployment.gateway().await;
    let key = post("k");
    let mut reader = Peer::of(&deployment.ensemble);
    let (mut first, mut last) = (Peer::of(&deployment.ensemble), Peer::of(&deployment.ensemble));
    first.acquire(&deployment.path("k")).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&key).await;
    let both = async { while deployment.locks(&mut reader).await.len() < 2 {} };
    soon("the gateway's node", both).await;
    last.contend(&deployment.path("k")).await;
    let all = async { while deployment.locks(&mut reader).await.len() < 3 {} };
    soon("the last node", all).await;
    first.release().await;
    upstream.received(1).await;
    assert!(last.is_waiting(), "the gateway came before it");
    upstream.go();

    last.acquired().await;
    assert_eq!(client.answer().await.status, 201);
    last.release().await;
    assert_eq!(upstream.count(), 1);
}

// Z36
#[tokio::test]
async fn a_foreign_lock_that_never_ends_is_waited_for_as_long_as_configured() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 300ms }");
    let gateway = deployment.gateway().await;
    let key = post("k");
    let mut foreign = Peer::of(&deployment.ensemble);
    foreign.acquire(&deployment.path("k")).await;

    let answer = gateway.ask(&key).await;

    assert_eq!((answer.status, answer.code()), (409, "in-progress".into()));
    assert_eq!(upstream.count(), 0);
    let mut reader = Peer::of(&deployment.ensemble);
    let alone = async { while deployment.locks(&mut reader).await.len() > 1 {} };
    soon("only the foreign lock", alone).await;
}

// Z16
#[tokio::test]
async fn a_key_node_that_was_reaped_is_made_again() {
    let upstream = Upstream::always(crate::shared::answer("429 Slow Down", "", "later"));
    let deployment = Deployment::to(upstream.address).await;
    let gateway = deployment.gateway().await;
    let key = post("k");
    let mut peer = Peer::of(&deployment.ensemble);
    // A release leaves no key node; a shard is never removed, but someone may.
    assert_eq!(gateway.ask(&key).await.status, 429);
    assert!(peer.get(&deployment.path("k")).await.is_err(), "the container is gone");
    let path = deployment.path("k");
    let shard = path.rsplit_once('/').unwrap().0;
    peer.delete(shard).await;

    assert_eq!(gateway.ask(&key).await.status, 429);
    assert_eq!(upstream.count(), 2);
}

#[tokio::test]
async fn a_key_node_that_vanishes_before_a_waiter_could_queue_is_made_again() {
    let upstream = Upstream::scripted(|_| {
        let mut script = vec![crate::shared::Step::Wait];
        script.extend(crate::shared::answer("429 Slow Down", "", "later"));
        script
    });
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) = (deployment.gateway().await, deployment.gateway_via(&link).await);
    let mut first = Client::connect(holder.address).await;
    first.send(&post("k")).await;
    upstream.received(1).await;
    link.next(Kind::Contend, Fate::RequestHeld);
    let mut second = Client::connect(other.address).await;
    second.send(&post("k")).await;
    link.holds().await;
    upstream.go();
    assert_eq!(first.answer().await.status, 429);
    let mut peer = Peer::of(&deployment.ensemble);
    assert!(peer.get(&deployment.path("k")).await.is_err(), "the container is gone");
    link.let_go();
    upstream.received(2).await;
    upstream.go();

    assert_eq!(second.answer().await.status, 429);
    assert_eq!(upstream.count(), 2);
    assert_eq!(deployment.key_nodes(&mut peer).await.len(), 0);
}
