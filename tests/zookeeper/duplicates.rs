//! Duplicates over several gateways.

use tokio::task::JoinSet;

use crate::{
    shared::{Client, Gateway, Upstream, ask, post, soon},
    support::{Deployment, Peer, hang_up},
};

/// Until so many requests wait in these gateways.
pub(crate) async fn wait_together(gateways: &[Gateway], count: u32) {
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
