//! A gateway that is told to stop at any moment of an attempt leaves no node of its sessions.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use crate::{
    crash::Full,
    shared::{Client, Gateway, Upstream, answer, post},
    support::{Deployment, Fate, Kind, Link, Peer},
};

/// For the servers to know of the end.
const SOON: Duration = Duration::from_secs(1);

/// Told to stop twice, so that it waits for nothing but what it must not leave.
async fn stop(gateway: Gateway) {
    gateway.signal(Signal::TERM);
    gateway.logged("gateway stops: finishing what is in flight").await;
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.exit_code().await, 0);
}

/// Whoever looks a second after the end of the gateways sees no node of any session.
async fn leaves_none(deployment: &Deployment, peer: &mut Peer, during: &str) {
    let ended = Instant::now();
    loop {
        let looked = ended.elapsed();
        let nodes = peer.tree(&deployment.root).await.into_iter();
        let left = nodes.filter(|(_, node)| node.is_ephemeral).map(|(path, _)| path);
        let left: Vec<_> = left.collect();
        if left.is_empty() {
            return;
        }
        assert!(looked < SOON, "stopped during {during}: {left:?}");
    }
}

/// Afterwards another gateway knows what is true.
async fn is_decided(deployment: &Deployment, upstream: &Upstream, key: &str) {
    let executions = upstream.executions(key);
    assert!(executions <= 1, "{key}");
    upstream.now(|_| answer("201 Created", "", "again"));
    let answer = deployment.gateway().await.ask(&post(key)).await;
    if answer.status == 409 {
        assert_eq!(answer.code(), "outcome-unknown", "{key}");
        assert_eq!(upstream.executions(key), executions, "{key}");
    } else {
        // Replayed if it was stored, and executed only if it never was.
        assert_eq!(answer.status, 201, "{key}: {answer:?}");
        assert_eq!(upstream.executions(key), 1, "{key}");
    }
}

// Z3, Z19
#[tokio::test]
async fn a_gateway_that_stops_while_a_request_to_the_servers_is_on_its_way_leaves_no_node() {
    for kind in [Kind::Begin, Kind::Commit, Kind::Release] {
        for fate in [Fate::RequestHeld, Fate::ReplyHeld] {
            let status = if kind == Kind::Release { "429 Slow Down" } else { "201 Created" };
            let upstream = Upstream::always(answer(status, "", "first"));
            let deployment = Deployment::to(upstream.address).await;
            let link = Link::to(&deployment.ensemble).await;
            let gateway = deployment.gateway_via(&link).await;
            let during = format!("{kind:?}-{fate:?}");
            link.next(kind, fate);
            let mut client = Client::connect(gateway.address).await;
            client.send(&post(&during)).await;
            link.holds().await;
            let ((), ()) = tokio::join!(stop(gateway), async { link.let_go() });

            let mut peer = Peer::of(&deployment.ensemble);
            leaves_none(&deployment, &mut peer, &during).await;
            if kind != Kind::Release {
                is_decided(&deployment, &upstream, &during).await;
            }
        }
    }
}

// Z19
#[tokio::test]
async fn a_gateway_that_stops_before_the_first_byte_or_during_the_call_leaves_no_node() {
    let (upstream, full) = (Upstream::holding(), Full::new().await);
    let deployment = Deployment::to(upstream.address).await.upstream("connect_timeout: 20s");
    let mut peer = Peer::of(&deployment.ensemble);
    for (during, endpoint) in [("connecting", full.address), ("calling", upstream.address)] {
        let link = Link::to(&deployment.ensemble).await;
        let gateway = deployment.plan().via(&link).to(endpoint).start().await;
        let mut client = Client::connect(gateway.address).await;
        client.send(&post(during)).await;
        link.passes(Kind::Begin, 1).await;
        if during == "calling" {
            upstream.received(1).await;
        }
        stop(gateway).await;
        leaves_none(&deployment, &mut peer, during).await;
    }
    is_decided(&deployment, &upstream, "connecting").await;
    is_decided(&deployment, &upstream, "calling").await;
}

// Z19, Z22
#[tokio::test]
async fn a_gateway_that_stops_while_its_node_is_put_in_the_queue_leaves_no_node() {
    for fate in [Fate::RequestHeld, Fate::ReplyHeld] {
        let upstream = Upstream::holding();
        let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
        let link = Link::to(&deployment.ensemble).await;
        let (holder, other) = (deployment.gateway().await, deployment.gateway_via(&link).await);
        let mut first = Client::connect(holder.address).await;
        first.send(&post("k")).await;
        upstream.received(1).await;
        link.next(Kind::Contend, fate);
        let mut second = Client::connect(other.address).await;
        second.send(&post("k")).await;
        link.holds().await;
        let ((), ()) = tokio::join!(stop(other), async { link.let_go() });

        let mut peer = Peer::of(&deployment.ensemble);
        upstream.go();
        assert_eq!(first.answer().await.status, 201, "{fate:?}");
        stop(holder).await;
        leaves_none(&deployment, &mut peer, &format!("{fate:?}")).await;
        assert_eq!(upstream.count(), 1, "{fate:?}");
    }
}
