//! Sessions that end while a key is held.

use tokio::time::Instant;

use crate::{
    crash::Full,
    shared::{Client, Request, Upstream, ask, post, soon},
    support::{Deployment, Fate, Kind, Link, Peer, hang_up},
};

/// Until no node of a key is left.
async fn emptied(deployment: &Deployment, peer: &mut Peer) {
    let emptied = async { while !deployment.key_nodes(peer).await.is_empty() {} };
    soon("the keys to be freed", emptied).await;
}

#[tokio::test]
async fn a_session_lost_before_the_first_byte_sends_nothing_and_frees_the_key() {
    let (upstream, full) = (Upstream::start(), Full::new().await);
    let deployment = Deployment::to(upstream.address).await.upstream("connect_timeout: 20s");
    let link = Link::to(&deployment.ensemble).await;
    let holder = deployment.plan().via(&link).to(full.address).start().await;
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    link.passes(Kind::Begin, 1).await;
    link.stall();

    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
    assert_eq!(answer.json()["outcome"], "not_sent");

    link.flow();
    let mut peer = Peer::of(&deployment.ensemble);
    emptied(&deployment, &mut peer).await;
    let other = deployment.gateway().await;
    assert_eq!(other.ask(&post("k")).await.status, 201);
    assert_eq!(upstream.count(), 1);
}

// Z6
#[tokio::test]
async fn a_begin_in_doubt_when_its_session_is_lost_is_undone() {
    for fate in [Fate::RequestHeld, Fate::ReplyHeld] {
        let upstream = Upstream::start();
        let deployment = Deployment::to(upstream.address).await;
        let link = Link::to(&deployment.ensemble).await;
        let gateway = deployment.gateway_via(&link).await;
        link.next(Kind::Begin, fate);
        let mut client = Client::connect(gateway.address).await;
        client.send(&post("k")).await;
        link.holds().await;
        link.stall();

        let answer = client.answer().await;
        assert_eq!(answer.status, 503, "{fate:?}: {answer:?}");
        assert_eq!(answer.json()["outcome"], "not_sent", "{fate:?}");
        assert_eq!(upstream.count(), 0, "{fate:?}");

        link.let_go();
        link.flow();
        let mut peer = Peer::of(&deployment.ensemble);
        emptied(&deployment, &mut peer).await;
        assert_eq!(gateway.ask(&post("k")).await.status, 201, "{fate:?}");
        assert_eq!(upstream.count(), 1, "{fate:?}");
    }
}

// R32, Z5, Z7
#[tokio::test]
async fn a_holder_cut_off_from_the_servers_answers_before_they_drop_its_lock() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await;
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) = (deployment.gateway_via(&link).await, deployment.gateway().await);
    let mut peer = Peer::of(&deployment.ensemble);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let [lock] = &deployment.locks(&mut peer).await[..] else { panic!("one lock") };
    link.stall();
    let cut_off = Instant::now();

    let answered = async {
        let answer = client.answer().await;
        (answer, Instant::now())
    };
    let dropped = async {
        peer.gone(lock).await;
        Instant::now()
    };
    let ((answer, answered), dropped) = tokio::join!(answered, dropped);

    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
    assert_eq!(answer.json()["outcome"], "unknown");
    assert!(
        answered < dropped,
        "answered {:?} and dropped {:?} after the cut",
        answered - cut_off,
        dropped - cut_off
    );
    let retry = other.ask(&post("k")).await;
    assert_eq!((retry.status, retry.code()), (409, "outcome-unknown".into()));
    // The link is back; what was lost stays lost.
    link.flow();
    upstream.go();
    let retry = other.ask(&post("k")).await;
    assert_eq!((retry.status, retry.code()), (409, "outcome-unknown".into()));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_waiter_whose_session_is_lost_is_told_that_the_key_is_in_progress() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) = (deployment.gateway().await, deployment.gateway_via(&link).await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let mut peer = Peer::of(&deployment.ensemble);
    let [lock] = &deployment.locks(&mut peer).await[..] else { panic!("one lock") };
    let mut waiter = Client::connect(other.address).await;
    waiter.send(&post("k")).await;
    deployment.ensemble.watched(lock).await;
    link.stall();

    let answer = waiter.answer().await;
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
    assert_eq!(answer.json()["outcome"], "in_progress");
    upstream.go();
    assert_eq!(client.answer().await.status, 201);
    assert_eq!(upstream.count(), 1);
}

// R13
#[tokio::test]
async fn with_settle_the_answer_of_a_lost_session_is_stored_under_the_next() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address)
        .await
        .rules("in_progress: { wait: 20s }, on_session_loss: settle");
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) = (deployment.gateway_via(&link).await, deployment.gateway().await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let mut peer = Peer::of(&deployment.ensemble);
    let before = deployment.locks(&mut peer).await;
    link.stall();
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
    link.flow();
    let adopted = async {
        loop {
            let locks = deployment.locks(&mut peer).await;
            if locks.len() == 1 && locks != before {
                break;
            }
        }
    };
    soon("the intent to be adopted", adopted).await;
    let mut retry = Client::connect(other.address).await;
    retry.send(&post("k")).await;
    upstream.go();

    let answer = retry.answer().await;
    assert_eq!((answer.status, answer.is_replay()), (201, true));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn an_answer_that_an_operator_resolved_while_settle_ran_stays() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address)
        .await
        .rules("in_progress: { wait: 20s }, on_session_loss: settle");
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) = (deployment.gateway_via(&link).await, deployment.gateway().await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    link.stall();
    assert_eq!(client.answer().await.code(), "session-lost");
    let path = deployment.path("k");
    let id = path.rsplit('/').next().unwrap();
    let resolve = Request::new("POST", &format!("/api/v1/keys/{id}/resolve"))
        .without("Host")
        .header("Host", "127.0.0.1")
        .header("Content-Type", "application/json")
        .body(r#"{"reason": "seen at the bank", "actor": "ops", "status": 202, "headers": [], "body": "resolved"}"#);
    // It is refused as long as the lock is there.
    let resolved = async { while ask(other.admin, &resolve).await.status != 200 {} };
    soon("the operator's word", resolved).await;
    link.flow();
    upstream.go();
    holder.metric_is("zk_session_state", &[("session", "0"), ("state", "connected")], 1.0).await;

    for gateway in [&other, &holder] {
        let answer = gateway.ask(&post("k")).await;
        assert_eq!((answer.status, &*answer.body), (202, &b"resolved"[..]));
    }
    assert_eq!(upstream.count(), 1);
}

// Z24
#[tokio::test]
async fn a_cut_shorter_than_the_lease_costs_no_request() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await;
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) =
        (deployment.gateway_via(&link).await, deployment.gateway_via(&link).await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let (retry, address) = (post("k"), other.address);
    let waiter = tokio::spawn(async move { ask(address, &retry).await });
    link.passes(Kind::Watch, 1).await;
    let connections = link.connections();
    link.cut();
    link.connected(connections + 2).await;
    upstream.go();

    assert_eq!(client.answer().await.status, 201);
    let answer = soon("the waiter", waiter).await.unwrap();
    assert_eq!((answer.status, answer.is_replay()), (201, true));
    assert_eq!(upstream.count(), 1);
}

// Z22, Z28
#[tokio::test]
async fn a_waiter_that_gives_up_leaves_no_node() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 300ms }");
    let (holder, other) = (deployment.gateway().await, deployment.gateway().await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;

    let answer = other.ask(&post("k")).await;
    assert_eq!((answer.status, answer.code()), (409, "in-progress".into()));
    let mut waiting = Client::connect(other.address).await;
    waiting.send(&post("k")).await;
    hang_up(waiting);

    let mut peer = Peer::of(&deployment.ensemble);
    let alone = async { while deployment.locks(&mut peer).await.len() > 1 {} };
    soon("only the holder's lock", alone).await;
    upstream.go();
    assert_eq!(client.answer().await.status, 201);
    assert_eq!(deployment.locks(&mut peer).await, <[String; 0]>::default());
}

// R38, Z19
#[tokio::test]
async fn a_gateway_that_stops_finishes_its_requests_and_leaves_no_node_of_a_session() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.sessions(2);
    let gateway = deployment.gateway().await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    gateway.signal(rustix::process::Signal::TERM);
    gateway.logged("gateway stops: finishing what is in flight").await;
    upstream.go();

    assert_eq!(client.answer().await.status, 201);
    assert_eq!(gateway.exit_code().await, 0);
    let mut peer = Peer::of(&deployment.ensemble);
    let nodes = peer.tree(&deployment.root).await;
    let left: Vec<_> = nodes.iter().filter(|(_, node)| node.is_ephemeral).collect();
    assert!(left.is_empty(), "{left:?}");
}

// Z19
#[tokio::test]
async fn a_gateway_that_stops_while_a_request_waits_takes_its_node_along() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 1s }");
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) = (deployment.gateway().await, deployment.gateway_via(&link).await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiter = Client::connect(other.address).await;
    waiter.send(&post("k")).await;
    link.passes(Kind::Watch, 1).await;
    other.signal(rustix::process::Signal::TERM);

    assert_eq!(waiter.answer().await.code(), "in-progress");
    assert_eq!(other.exit_code().await, 0);
    let mut peer = Peer::of(&deployment.ensemble);
    let nodes = peer.tree(&deployment.root).await;
    let owners: std::collections::BTreeSet<_> =
        nodes.values().filter(|node| node.is_ephemeral).map(|node| node.owner).collect();
    assert_eq!(owners.len(), 1, "only the holder's: {nodes:?}");
    upstream.go();
    assert_eq!(client.answer().await.status, 201);
}

// Z9, Z13, Z15, Z26
#[tokio::test]
async fn a_hundred_cut_connections_leave_no_node_and_no_watch_and_fail_no_request() {
    let upstream = Upstream::always(crate::shared::answer("429 Too Many Requests", "", "later"));
    let deployment = Deployment::alone(upstream.address).await;
    let counters = ["zk_znode_count", "zk_ephemerals_count", "zk_watch_count"];
    let link = Link::to(&deployment.ensemble).await;
    let gateway = deployment.gateway_via(&link).await;
    assert_eq!(gateway.ask(&post("warm")).await.status, 429);
    let mut peer = Peer::of(&deployment.ensemble);
    let before: Vec<_> = peer.tree(&deployment.root).await.into_keys().collect();
    let mut counts = Vec::new();
    for counter in counters {
        counts.push(deployment.ensemble.sum(counter).await);
    }

    for number in 0..100 {
        let kind = [Kind::Begin, Kind::Release][number % 2];
        let fate = [Fate::RequestLost, Fate::ReplyLost][number / 2 % 2];
        link.next(kind, fate);
        let answer = gateway.ask(&post(&format!("k-{number}"))).await;
        assert_eq!(answer.status, 429, "{number}, {kind:?}, {fate:?}: {answer:?}");
        link.happened().await;
    }

    assert_eq!(upstream.count(), 101);
    let settled = async {
        loop {
            let now: Vec<_> = peer.tree(&deployment.root).await.into_keys().collect();
            if now == before {
                break;
            }
        }
    };
    soon("the same nodes as before", settled).await;
    // Sessions of earlier tests may still come to their ends.
    for (counter, before) in counters.into_iter().zip(counts) {
        deployment.ensemble.sum_is(counter, |now| now <= before).await;
    }
}

#[tokio::test]
async fn many_keys_are_spread_over_the_sessions() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.sessions(2);
    let gateway = deployment.gateway().await;
    for session in ["0", "1"] {
        let labels = [("session", session), ("state", "connected")];
        gateway.metric_is("zk_session_state", &labels, 1.0).await;
    }
    let mut clients = Vec::new();
    for number in 0..16 {
        let mut client = Client::connect(gateway.address).await;
        client.send(&post(&format!("k-{number}"))).await;
        clients.push(client);
    }
    upstream.received(16).await;
    let mut peer = Peer::of(&deployment.ensemble);
    let nodes = deployment.key_nodes(&mut peer).await;
    let owners: std::collections::BTreeSet<_> =
        nodes.values().filter(|node| node.is_ephemeral).map(|node| node.owner).collect();
    assert_eq!(owners.len(), 2);
    for _ in &clients {
        upstream.go();
    }
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 201);
    }
}
