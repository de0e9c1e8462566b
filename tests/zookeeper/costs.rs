//! What requests cost the servers, by counters that are not the gateway's.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{task::JoinSet, time::Instant};

use crate::{
    duplicates::wait_together,
    shared::{Client, Gateway, Upstream, ask, post, soon},
    support::{Deployment, Ensemble, Kind, Link, Peer, show},
};

#[tokio::test]
async fn a_new_key_costs_one_read_and_two_transactions_and_a_duplicate_one_read() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let (first, second) =
        (Link::to(&deployment.ensemble).await, Link::to(&deployment.ensemble).await);
    let executing = deployment.gateway_via(&first).await;
    let replaying = deployment.gateway_via(&second).await;
    // What a first request pays is no measure.
    executing.ask(&post("warm")).await;
    replaying.ask(&post("warm")).await;
    let paid = |link: &Link| {
        [Kind::Read, Kind::Begin, Kind::Commit, Kind::BeginUnderLock, Kind::Contend]
            .map(|kind| link.passed(kind))
    };
    let (before, before_replays) = (paid(&first), paid(&second));

    for number in 0..10 {
        assert_eq!(executing.ask(&post(&format!("k-{number}"))).await.status, 201);
    }
    for number in 0..10 {
        assert!(replaying.ask(&post(&format!("k-{number}"))).await.is_replay());
    }

    let cost = |now: [usize; 5], before: [usize; 5]| {
        let mut cost = now;
        cost.iter_mut().zip(before).for_each(|(now, before)| *now -= before);
        cost
    };
    assert_eq!(cost(paid(&first), before), [10, 10, 10, 0, 0]);
    assert_eq!(cost(paid(&second), before_replays), [10, 0, 0, 0, 0]);
}

/// The first gateway is elected to sweep, and so has requests of its own.
async fn behind_a_sweeper(deployment: &Deployment) -> (Gateway, [Gateway; 3]) {
    let sweeper = deployment.gateway().await;
    let others =
        [deployment.gateway().await, deployment.gateway().await, deployment.gateway().await];
    (sweeper, others)
}

/// How many requests the servers had from this gateway's session.
async fn received_from(ensemble: &Ensemble, gateway: &Gateway) -> i64 {
    let opened = gateway.logged("session opened").await;
    ensemble.received_from(opened["session_id"].as_str().unwrap()).await
}

/// What a gateway's session and all servers had to do.
#[derive(Debug)]
struct Cost {
    requests: i64,
    transactions: i64,
    /// Heartbeats, and the ends of sessions that earlier tests had.
    beside: i64,
}

/// Of asking this gateway for each key in turn.
async fn cost(ensemble: &Ensemble, gateway: &Gateway, keys: i64, is_replay: bool) -> Cost {
    let counts = async || (received_from(ensemble, gateway).await, ensemble.zxid().await);
    let (started, before) = (Instant::now(), counts().await);
    for number in 0..keys {
        let answer = gateway.ask(&post(&format!("k-{number}"))).await;
        assert_eq!((answer.status, answer.is_replay()), (201, is_replay), "{answer:?}");
    }
    let (taken, after) = (started.elapsed(), counts().await);
    let (requests, transactions) = (after.0 - before.0, after.1 - before.1);
    let what = if is_replay { "replays" } else { "new keys" };
    show(&format!("{keys} {what}: {requests} requests, {transactions} transactions in {taken:?}"));
    // Each of four sessions beats less than once a second.
    let beside = 4 * i64::try_from(taken.as_secs()).unwrap() + keys / 10;
    Cost { requests, transactions, beside }
}

#[tokio::test]
async fn the_servers_count_one_read_and_two_transactions_for_a_key_and_one_read_for_a_replay() {
    const KEYS: i64 = 300;
    let upstream = Upstream::start();
    let deployment = Deployment::alone(upstream.address).await;
    let (_sweeper, [executing, replaying, _]) = behind_a_sweeper(&deployment).await;

    let new = cost(&deployment.ensemble, &executing, KEYS, false).await;
    let replayed = cost(&deployment.ensemble, &replaying, KEYS, true).await;

    for (cost, requests, transactions) in [(new, 3 * KEYS, 2 * KEYS), (replayed, KEYS, 0)] {
        let is_about = |counted, exact| (exact..=exact + cost.beside).contains(&counted);
        assert!(is_about(cost.requests, requests), "{cost:?}");
        assert!(is_about(cost.transactions, transactions), "{cost:?}");
    }
    assert_eq!(upstream.count(), usize::try_from(KEYS).unwrap());
}

#[tokio::test]
async fn an_answer_that_was_stored_or_found_is_replayed_from_memory_from_then_on() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let (first, second) =
        (Link::to(&deployment.ensemble).await, Link::to(&deployment.ensemble).await);
    let (executing, finding) =
        (deployment.gateway_via(&first).await, deployment.gateway_via(&second).await);
    assert_eq!(executing.ask(&post("k")).await.status, 201);
    assert!(finding.ask(&post("k")).await.is_replay());

    for (gateway, link) in [(&executing, &first), (&finding, &second)] {
        let reads = link.passed(Kind::Read);
        for _ in 0..20 {
            assert!(gateway.ask(&post("k")).await.is_replay());
        }
        // The census of the servers reads, too.
        assert!(link.passed(Kind::Read) < reads + 10, "not from memory");
    }
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_thousand_waiters_over_three_gateways_cost_one_notification_for_each_release() {
    const WAITERS: usize = 1000;
    let upstream = Upstream::holding();
    let deployment = Deployment::alone(upstream.address)
        .await
        .rules("in_progress: { wait: 60s }")
        .limits("max_waiters_per_key: 1000, max_in_flight_per_scope: 5000");
    let ensemble = &deployment.ensemble;
    let (_sweeper, gateways) = behind_a_sweeper(&deployment).await;
    let watches = ensemble.sum("zk_watch_count").await;
    let mut holder = Client::connect(gateways[0].address).await;
    holder.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiters = JoinSet::new();
    for number in 0..WAITERS {
        let address = gateways[number % 3].address;
        waiters.spawn(async move { ask(address, &post("k")).await });
    }
    wait_together(&gateways, u32::try_from(WAITERS).unwrap() - 2).await;
    // One contender for each other gateway: each watches the one before it.
    ensemble.sum_is("zk_watch_count", |now| now == watches + 2).await;
    let mut peer = Peer::of(ensemble);
    let locks = deployment.locks(&mut peer).await;
    assert_eq!(locks.len(), gateways.len(), "{locks:?}");
    drop(peer);
    let counts = async || {
        let mut requests = 0;
        for gateway in &gateways {
            requests += received_from(ensemble, gateway).await;
        }
        (requests, ensemble.sum("zk_sum_node_deleted_watch_count").await)
    };
    let before = counts().await;
    let started = Instant::now();
    upstream.go();
    assert_eq!(holder.answer().await.status, 201);

    let answers = soon("all answers", waiters.join_all()).await;

    let taken = started.elapsed();
    ensemble.sum_is("zk_watch_count", |now| now <= watches).await;
    let after = counts().await;
    let (requests, notified) = (after.0 - before.0, after.1 - before.1);
    show(&format!(
        "{WAITERS} waiters answered in {taken:?}: {requests} requests, {notified} notifications for \
         the end of the holder's lock and of another that was waited for"
    ));
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.is_replay()));
    assert_eq!(upstream.count(), 1);
    assert_eq!(notified, 2, "one for each lock with a waiter behind it");
    // One commit; a look and a deletion for each other gateway; heartbeats and pings.
    assert!(requests < 100, "{requests} requests for one release");
}

// Z13
#[tokio::test]
async fn thousands_of_locks_that_were_waited_for_leave_no_watch_and_no_node() {
    const WORKERS: usize = 16;
    let cycles = std::env::var("ONCEGATE_TEST_CYCLES");
    let cycles: usize = cycles.map_or(1000, |cycles| cycles.parse().unwrap());
    let upstream = Upstream::start();
    let deployment =
        Deployment::alone(upstream.address).await.sessions(2).rules("in_progress: { wait: 20s }");
    let gateways =
        [deployment.gateway().await, deployment.gateway().await, deployment.gateway().await];
    let addresses = [0, 1, 2].map(|number: usize| gateways[number].address);
    let counts = async || {
        let ensemble = &deployment.ensemble;
        (ensemble.sum("zk_watch_count").await, ensemble.sum("zk_ephemerals_count").await)
    };
    let before = counts().await;
    let next = Arc::<AtomicUsize>::default();
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let next = Arc::clone(&next);
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= cycles {
                    break;
                }
                let request = post(&format!("k-{number}"));
                let [one, two, three] = addresses.map(|address| ask(address, &request));
                let answers = <[_; 3]>::from(tokio::join!(one, two, three));
                assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
                assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
            }
        });
    }
    // Each answer has a bound of its own.
    workers.join_all().await;

    assert_eq!(upstream.count(), cycles);
    let mut notified = 0.0;
    for gateway in &gateways {
        notified += gateway.metric("zk_watch_notifications_total", &[]).await;
    }
    show(&format!("{cycles} keys at three gateways each: {notified} notifications"));
    let some = f64::from(u32::try_from(cycles / 50).unwrap());
    assert!(notified >= some, "{notified}: hardly anybody waited");
    let ensemble = &deployment.ensemble;
    ensemble.sum_is("zk_watch_count", |now| now <= before.0).await;
    ensemble.sum_is("zk_ephemerals_count", |now| now <= before.1).await;
    let mut peer = Peer::of(ensemble);
    assert_eq!(deployment.locks(&mut peer).await, <[String; 0]>::default());
}
