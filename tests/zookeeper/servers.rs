//! Servers that die or pause under the gateways.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, task::JoinSet, time::Instant};

use crate::{
    shared::{Client, Upstream, ask, post, soon},
    support::{Deployment, Ensemble, Peer, Which, show},
};

// R30, Z11
#[tokio::test]
async fn a_leader_killed_under_load_costs_no_request_and_repeats_none() {
    const WORKERS: usize = 16;
    let upstream = Upstream::start();
    let deployment = Deployment::alone(upstream.address).await.sessions(2);
    let gateways =
        [deployment.gateway().await, deployment.gateway().await, deployment.gateway().await];
    let is_over = Arc::new(AtomicBool::new(false));
    let (asked, answered) = (Arc::<AtomicUsize>::default(), watch::Sender::new(0));
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let address = gateways[worker % 3].address;
        let (is_over, asked) = (Arc::clone(&is_over), Arc::clone(&asked));
        let answered = answered.clone();
        workers.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let number = asked.fetch_add(1, Ordering::Relaxed);
                let answer = ask(address, &post(&format!("k-{number}"))).await;
                assert_eq!(answer.status, 201, "{answer:?}");
                assert!(!answer.is_replay());
                answered.send_modify(|count| *count += 1);
            }
        });
    }
    let mut counts = answered.subscribe();
    let mut reaches = async |count: usize| {
        drop(soon("answers under load", counts.wait_for(|now| *now >= count)).await.unwrap());
    };
    reaches(200).await;
    let leader = deployment.ensemble.leader().await;
    let silence = async {
        let (mut counts, mut longest) = (answered.subscribe(), Duration::ZERO);
        let goal = *counts.borrow_and_update() + 500;
        let mut last = Instant::now();
        while *counts.borrow() < goal {
            counts.changed().await.unwrap();
            longest = longest.max(last.elapsed());
            last = Instant::now();
            counts.mark_unchanged();
        }
        longest
    };
    let silence = soon("answers after the leader's end", silence);
    let (silence, ()) = tokio::join!(silence, deployment.ensemble.kill(leader));
    show(&format!("leader killed: nobody was answered for {silence:?}"));
    is_over.store(true, Ordering::Relaxed);
    soon("the workers", workers.join_all()).await;

    let keys = asked.load(Ordering::Relaxed);
    assert_eq!(upstream.count(), keys);
    let answer = gateways[0].ask(&post("k-0")).await;
    assert!(answer.is_replay());
    let mut peer = Peer::of(&deployment.ensemble);
    assert_eq!(deployment.locks(&mut peer).await, <[String; 0]>::default());
}

// R30, Z24
#[tokio::test]
async fn a_leader_killed_while_upstreams_work_costs_no_request() {
    let upstream = Upstream::holding();
    let deployment = Deployment::alone(upstream.address).await.rules("in_progress: { wait: 20s }");
    let (holder, others) =
        (deployment.gateway().await, [deployment.gateway().await, deployment.gateway().await]);
    let mut client = Client::connect(holder.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiters = Vec::new();
    for other in &others {
        let mut waiter = Client::connect(other.address).await;
        waiter.send(&post("k")).await;
        waiters.push(waiter);
    }
    let mut peer = Peer::of(&deployment.ensemble);
    let all = async { while deployment.locks(&mut peer).await.len() < 3 {} };
    soon("the waiters' nodes", all).await;
    let leader = deployment.ensemble.leader().await;
    deployment.ensemble.kill(leader).await;
    upstream.go();

    assert_eq!(client.answer().await.status, 201);
    for waiter in &mut waiters {
        let answer = waiter.answer().await;
        assert_eq!((answer.status, answer.is_replay()), (201, true));
    }
    assert_eq!(upstream.count(), 1);
}

/// A new key waits for its own time, what runs waits for as long as it is leased.
#[tokio::test]
async fn servers_that_pause_for_less_than_the_lease_only_delay() {
    let upstream = Upstream::holding();
    let (ensemble, _wires) = Ensemble::own_with("maxSessionTimeout=12000", &[]).await;
    let deployment =
        Deployment::on(ensemble, upstream.address).session_timeout("12s").ledger("timeout: 4s");
    let gateway = deployment.gateway().await;
    let mut running = Client::connect(gateway.address).await;
    running.send(&post("running")).await;
    upstream.received(1).await;
    deployment.ensemble.pause(Which::All).await;
    upstream.go();
    // The pause itself is what is tested: there is no event to wait for.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut new = Client::connect(gateway.address).await;
    new.send(&post("new")).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    deployment.ensemble.resume(Which::All).await;
    upstream.go();

    assert_eq!(running.answer().await.status, 201);
    assert_eq!(new.answer().await.status, 201);
    assert_eq!(upstream.executions("running"), 1);
    assert_eq!(upstream.executions("new"), 1);
}

#[tokio::test]
async fn a_leader_paused_for_longer_than_the_lease_costs_what_is_in_flight() {
    let upstream = Upstream::holding();
    let deployment = Deployment::alone(upstream.address).await;
    let gateway = deployment.gateway().await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let leader = deployment.ensemble.leader().await;
    deployment.ensemble.pause(leader).await;

    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
    assert_eq!(answer.json()["outcome"], "unknown");

    deployment.ensemble.resume(leader).await;
    upstream.go();
    let retry = deployment.gateway().await.ask(&post("k")).await;
    assert_eq!((retry.status, retry.code()), (409, "outcome-unknown".into()));
    assert_eq!(upstream.count(), 1);
}

// Z25, P6
#[tokio::test]
async fn without_servers_nothing_is_sent_and_with_them_again_all_is_as_before() {
    let upstream = Upstream::holding();
    let deployment = Deployment::alone(upstream.address).await.ledger("timeout: 1s").sessions(2);
    let gateway = deployment.gateway().await;
    let mut running = Client::connect(gateway.address).await;
    running.send(&post("running")).await;
    upstream.received(1).await;
    deployment.ensemble.kill(Which::All).await;

    let answer = running.answer().await;
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
    assert_eq!(answer.json()["outcome"], "unknown");
    let answer = gateway.ask(&post("new")).await;
    assert_eq!((answer.status, answer.code()), (503, "ledger-unavailable".into()));
    assert_eq!(answer.json()["outcome"], "not_sent");
    assert_eq!(gateway.ask_admin("/readyz").await.status, 503);
    upstream.now(|_| crate::shared::answer("201 Created", "", "new"));
    assert_eq!(gateway.ask(&crate::shared::get("/plain")).await.status, 201);

    deployment.ensemble.restart(Which::All).await;
    let ready = async { while gateway.ask_admin("/readyz").await.status != 200 {} };
    soon("a usable session", ready).await;
    assert_eq!(gateway.ask(&post("new")).await.status, 201);
    assert_eq!(upstream.executions("running"), 1);
    assert_eq!(upstream.executions("new"), 1);
}
