//! Gateways that are killed or paused while they hold a key.

use std::net::SocketAddr;

use rustix::process::Signal;
use tokio::net::{TcpSocket, TcpStream};

use crate::{
    shared::{Answer, Client, Gateway, Request, Step, Upstream, answer, ask, post, soon},
    support::{Deployment, Fate, Kind, Link, Peer},
};

/// An address that takes no connection and refuses none: a gateway holds a key and cannot send.
pub(crate) struct Full {
    pub(crate) address: SocketAddr,
    _listener: tokio::net::TcpListener,
    _queued: TcpStream,
}

// === impl Full ===

impl Full {
    pub(crate) async fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        // A queue of no length takes one connection.
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let queued = TcpStream::connect(address).await.unwrap();
        Self { address, _listener: listener, _queued: queued }
    }
}

fn is_unknown(answer: &Answer) {
    assert_eq!((answer.status, answer.code()), (409, "outcome-unknown".into()), "{answer:?}");
    assert_eq!(answer.json()["outcome"], "unknown");
}

/// What a client is told whose answer came too late to be stored: whether the gateway sees the end
/// of its session or the answer of its upstream first is chance.
fn is_lost(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(["session-lost", "answer-not-stored"].contains(&&*answer.code()), "{answer:?}");
    assert_eq!(answer.json()["outcome"], "unknown");
    assert_eq!(answer.json()["retry_same_key"], true);
}

/// SIGSTOP, until every thread has stopped.
pub(crate) async fn pause(gateway: &Gateway) {
    gateway.signal(Signal::STOP);
    let stopped = async {
        loop {
            let threads = std::fs::read_dir(format!("/proc/{}/task", gateway.pid())).unwrap();
            let stats = threads.map(|thread| {
                std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap()
            });
            // The state stands behind the name, which may contain anything.
            if stats.into_iter().all(|stat| stat.rsplit_once(") ").unwrap().1.starts_with('T')) {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    soon("all threads to stop", stopped).await;
}

/// A deployment whose waiters outlast a session.
async fn deployment(endpoint: SocketAddr) -> Deployment {
    Deployment::to(endpoint).await.rules("in_progress: { wait: 20s }")
}

/// Kills a gateway at this step of a request, and gives another one. What was held stays held.
async fn killed_at(deployment: &Deployment, step: Kind, fate: Fate) -> (Gateway, (Link, Client)) {
    let link = Link::to(&deployment.ensemble).await;
    let (holder, other) = (deployment.gateway_via(&link).await, deployment.gateway().await);
    link.next(step, fate);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    link.holds().await;
    holder.kill();
    (other, (link, client))
}

// R1, R2, R4
#[tokio::test]
async fn a_gateway_killed_while_its_upstream_works_leaves_the_key_unknown() {
    let upstream = Upstream::holding();
    let deployment = deployment(upstream.address).await;
    let (holder, other) = (deployment.gateway().await, deployment.gateway().await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    holder.kill();

    is_unknown(&other.ask(&post("k")).await);
    is_unknown(&deployment.gateway().await.ask(&post("k")).await);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_gateway_killed_before_its_begin_was_acknowledged_leaves_the_key_unknown() {
    let upstream = Upstream::start();
    let deployment = deployment(upstream.address).await;
    let (other, _held) = killed_at(&deployment, Kind::Begin, Fate::ReplyHeld).await;

    // The intent is stored, and nobody is left who knows that nothing was sent.
    is_unknown(&other.ask(&post("k")).await);
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn a_gateway_killed_before_its_begin_reached_a_server_leaves_the_key_free() {
    let upstream = Upstream::start();
    let deployment = deployment(upstream.address).await;
    let (other, _held) = killed_at(&deployment, Kind::Begin, Fate::RequestHeld).await;

    let answer = other.ask(&post("k")).await;
    assert_eq!((answer.status, answer.is_replay()), (201, false));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_gateway_killed_between_its_begin_and_the_first_byte_leaves_the_key_unknown() {
    let (upstream, full) = (Upstream::start(), Full::new().await);
    let deployment = deployment(upstream.address).await.upstream("connect_timeout: 20s");
    let link = Link::to(&deployment.ensemble).await;
    let holder = deployment.plan().via(&link).to(full.address).start().await;
    let other = deployment.gateway().await;
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    link.passes(Kind::Begin, 1).await;
    holder.kill();

    is_unknown(&other.ask(&post("k")).await);
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn a_gateway_killed_between_the_answer_and_its_commit_leaves_the_key_unknown() {
    let upstream = Upstream::start();
    let deployment = deployment(upstream.address).await;
    let (other, _held) = killed_at(&deployment, Kind::Commit, Fate::RequestHeld).await;

    is_unknown(&other.ask(&post("k")).await);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_gateway_killed_after_its_commit_leaves_the_answer() {
    let upstream = Upstream::start();
    let deployment = deployment(upstream.address).await;
    let (other, _held) = killed_at(&deployment, Kind::Commit, Fate::ReplyHeld).await;

    let answer = other.ask(&post("k")).await;
    assert_eq!((answer.status, answer.is_replay()), (201, true));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn with_retry_a_killed_gateways_key_runs_again_under_a_higher_token() {
    let upstream = Upstream::holding();
    let deployment = deployment(upstream.address).await.rules("unknown_outcome: retry");
    let (holder, other) = (deployment.gateway().await, deployment.gateway().await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    holder.kill();
    upstream.now(|_| answer("201 Created", "", "second"));

    let answer = other.ask(&post("k")).await;

    assert_eq!((answer.status, &*answer.body), (201, &b"second"[..]));
    let numbers = |name: &str| -> Vec<u64> {
        let received = upstream.all();
        received.iter().map(|request| request.header(name).unwrap().parse().unwrap()).collect()
    };
    assert_eq!(numbers("idempotency-attempt"), [1, 2]);
    let tokens = numbers("idempotency-fencing-token");
    assert!(tokens[0] < tokens[1], "{tokens:?}");
    assert!(other.ask(&post("k")).await.is_replay());
}

#[tokio::test]
async fn a_takeover_whose_upstream_refuses_does_not_free_what_may_have_run() {
    let (upstream, nobody) = (Upstream::holding(), crate::shared::Refusing::new());
    let deployment = deployment(upstream.address).await.rules("unknown_outcome: retry");
    let holder = deployment.gateway().await;
    let other = deployment.plan().to(nobody.address).start().await;
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    holder.kill();

    let answer = other.ask(&post("k")).await;

    assert_eq!((answer.status, answer.code()), (502, "upstream-unreachable".into()));
    assert_eq!(upstream.count(), 1);
    let mut peer = Peer::of(&deployment.ensemble);
    assert_eq!(deployment.locks(&mut peer).await, <[String; 0]>::default());
    let path = deployment.path("k");
    let told = Request::new("GET", &format!("/api/v1/keys/{}", path.rsplit_once('/').unwrap().1))
        .without("Host")
        .header("Host", "127.0.0.1");
    let told = ask(other.admin, &told).await;
    assert_eq!(told.json()["state"], "unknown", "{told:?}");
}

// R31, Z5
#[tokio::test]
async fn a_gateway_paused_beyond_its_session_answers_503_and_commits_nothing() {
    let upstream = Upstream::holding();
    let deployment = deployment(upstream.address).await;
    let (holder, other) = (deployment.gateway().await, deployment.gateway().await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let mut peer = Peer::of(&deployment.ensemble);
    let [lock] = &deployment.locks(&mut peer).await[..] else { panic!("one lock") };
    pause(&holder).await;
    upstream.go();

    // A waiter is told as soon as the servers have dropped the lock.
    is_unknown(&other.ask(&post("k")).await);
    assert!(peer.get(lock).await.is_err(), "the lock is gone");
    let before = peer.get(&deployment.record("k")).await;
    holder.signal(Signal::CONT);

    is_lost(&client.answer().await);
    assert_eq!(peer.get(&deployment.record("k")).await, before);
    is_unknown(&holder.ask(&post("k")).await);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn with_retry_a_paused_gateway_does_not_undo_what_its_successor_stored() {
    let upstream = Upstream::scripted(|received| {
        let attempt = received.header("idempotency-attempt").unwrap().to_owned();
        let mut script = if attempt == "1" { vec![Step::Wait] } else { Vec::new() };
        script.extend(answer("201 Created", "", attempt));
        script
    });
    let deployment = deployment(upstream.address).await.rules("unknown_outcome: retry");
    let (holder, other) = (deployment.gateway().await, deployment.gateway().await);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    pause(&holder).await;
    upstream.go();
    assert_eq!(other.ask(&post("k")).await.body, b"2");
    holder.signal(Signal::CONT);

    is_lost(&client.answer().await);
    for gateway in [&holder, &other] {
        let replay = gateway.ask(&post("k")).await;
        assert_eq!((replay.is_replay(), &*replay.body), (true, &b"2"[..]));
    }
    assert_eq!(upstream.count(), 2);
}
