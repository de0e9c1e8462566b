//! Duplicates over several gateways.

use tokio::task::JoinSet;

use crate::{
    shared::{Client, Gateway, Upstream, ask, post, soon},
    support::{Deployment, Kind, Link, Peer, hang_up},
};

/// Until so many requests wait in these gateways.
async fn wait_together(gateways: &[Gateway], count: u32) {
    let waiting = async {
        loop {
            let mut waiters = 0.0;
            for gateway in gateways {
                waiters += gateway.metric("oncegate_waiters", &[]).await;
            }
            if waiters >= f64::from(count) {
                break;
            }
        }
    };
    soon("all to wait", waiting).await;
}

// R25, R73
#[tokio::test]
async fn of_a_hundred_duplicates_over_three_gateways_one_runs_and_all_get_its_answer() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let gateways =
        [deployment.gateway().await, deployment.gateway().await, deployment.gateway().await];
    let mut duplicates = JoinSet::new();
    for number in 0..100 {
        let address = gateways[number % 3].address;
        duplicates.spawn(async move { ask(address, &post("k")).await });
    }
    // The one that runs does not wait, and one that contends may be counted apart.
    wait_together(&gateways, 97).await;
    upstream.go();

    let answers = soon("all answers", duplicates.join_all()).await;

    assert_eq!(upstream.count(), 1);
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1, "{answers:?}");
    for answer in &answers {
        assert_eq!(answer.lasting(), answers[0].lasting());
    }
    let mut peer = Peer::of(&deployment.ensemble);
    assert_eq!(deployment.locks(&mut peer).await, <[String; 0]>::default());
}

// R36
#[tokio::test]
async fn a_client_that_left_gets_the_answer_from_another_gateway() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await;
    let (first, second) = (deployment.gateway().await, deployment.gateway().await);
    let mut client = Client::connect(first.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    hang_up(client);

    let retry = post("k");
    let (answer, ()) = tokio::join!(second.ask(&retry), async { upstream.go() });

    assert_eq!((answer.status, answer.is_replay()), (201, true));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn another_request_under_the_key_is_refused_by_every_gateway_in_every_state() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await;
    let (first, second) = (deployment.gateway().await, deployment.gateway().await);
    let other = post("k").body("amount=6");
    let mut client = Client::connect(first.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;

    let in_flight = second.ask(&other).await;
    assert_eq!((in_flight.status, in_flight.code()), (422, "key-reused".into()));
    upstream.go();
    assert_eq!(client.answer().await.status, 201);
    for gateway in [&first, &second] {
        let completed = gateway.ask(&other).await;
        assert_eq!((completed.status, completed.code()), (422, "key-reused".into()));
    }
    assert_eq!(upstream.count(), 1);
}

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

// Z13
#[tokio::test]
async fn a_thousand_waiters_over_three_gateways_cost_the_servers_a_handful_of_requests() {
    const WAITERS: usize = 1000;
    let upstream = Upstream::holding();
    let deployment = Deployment::alone(upstream.address)
        .await
        .rules("in_progress: { wait: 60s }")
        .limits("max_waiters_per_key: 1000, max_in_flight_per_scope: 5000");
    let gateways =
        [deployment.gateway().await, deployment.gateway().await, deployment.gateway().await];
    let watches = deployment.ensemble.sum("zk_watch_count").await;
    let mut holder = Client::connect(gateways[0].address).await;
    holder.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiters = JoinSet::new();
    for number in 0..WAITERS {
        let address = gateways[number % 3].address;
        waiters.spawn(async move { ask(address, &post("k")).await });
    }
    wait_together(&gateways, u32::try_from(WAITERS).unwrap() - 2).await;
    let mut peer = Peer::of(&deployment.ensemble);
    let locks = deployment.locks(&mut peer).await;
    assert!(locks.len() <= gateways.len(), "one contender for each gateway: {locks:?}");
    drop(peer);
    let before = deployment.ensemble.sum("zk_packets_received").await;
    upstream.go();
    assert_eq!(holder.answer().await.status, 201);

    let answers = soon("all answers", waiters.join_all()).await;

    let cost = deployment.ensemble.sum("zk_packets_received").await - before;
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.is_replay()));
    assert_eq!(upstream.count(), 1);
    // One commit; a look and a deletion for each other gateway; heartbeats and pings.
    assert!(cost < 100, "{cost} requests for one release");
    deployment.ensemble.sum_is("zk_watch_count", |now| now <= watches).await;
}
