//! The gateway is killed at any instant; the file tells the next one what is known.

use crate::support::{Answer, Client, Config, Gateway, Home, Load, Step, Upstream, post};

async fn start(upstream: &Upstream) -> (Gateway, Home, Config) {
    let config = Config::to(upstream.address).durable();
    let (gateway, home) = Gateway::start(&config).await;
    (gateway, home, config)
}

// R1, R2, R4, R9, R26, R73
#[tokio::test]
async fn killed_while_the_upstream_works_the_outcome_is_unknown_and_nothing_runs_again() {
    let upstream = Upstream::holding();
    let (gateway, home, config) = start(&upstream).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    gateway.kill();
    assert!(client.is_closed().await);

    for _ in 0..2 {
        let gateway = home.start(&config).await;
        for _ in 0..2 {
            let retry = gateway.ask(&post("k")).await;
            assert_eq!((retry.status, retry.code().as_str()), (409, "outcome-unknown"));
        }
        assert_eq!(gateway.ask(&post("k").body("amount=6")).await.code(), "key-reused");
        gateway.kill();
    }
    assert_eq!(upstream.count(), 1);
}

// R31
#[tokio::test]
async fn killed_while_the_upstream_works_a_route_that_retries_runs_again_with_a_higher_token() {
    let upstream = Upstream::holding();
    let config = Config::to(upstream.address).durable().rules("unknown_outcome: retry");
    let (gateway, home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    gateway.kill();
    // One place is taken by the call that was cut off.
    upstream.go();
    upstream.go();

    let gateway = home.start(&config).await;
    let retry = gateway.ask(&post("k")).await;

    assert_eq!((retry.status, retry.is_replay()), (201, false));
    assert!(gateway.ask(&post("k")).await.is_replay());
    let received = upstream.all();
    let attempts: Vec<_> =
        received.iter().map(|received| received.header("idempotency-attempt").unwrap()).collect();
    assert_eq!(attempts, ["1", "2"]);
    let tokens: Vec<u64> = received
        .iter()
        .map(|received| received.header("idempotency-fencing-token").unwrap().parse().unwrap())
        .collect();
    assert!(tokens[0] < tokens[1], "{tokens:?}");
}

#[tokio::test]
async fn a_route_that_retries_stops_at_its_number_of_attempts() {
    let upstream = Upstream::always(vec![Step::Close]);
    let config = Config::to(upstream.address).rules("unknown_outcome: { retry: { attempts: 3 } }");
    let (gateway, _home) = Gateway::start(&config).await;
    for _ in 0..3 {
        assert_eq!(gateway.ask(&post("k")).await.code(), "upstream-interrupted");
    }
    assert_eq!(gateway.ask(&post("k")).await.code(), "outcome-unknown");
    assert_eq!(upstream.count(), 3);
}

#[tokio::test]
async fn killed_right_after_its_answer_the_next_one_replays_it() {
    let upstream = Upstream::start();
    let (mut gateway, home, config) = start(&upstream).await;
    for number in 0..5 {
        let key = format!("k-{number}");
        let first = gateway.ask(&post(&key)).await;
        gateway.kill();
        gateway = home.start(&config).await;
        let retry = gateway.ask(&post(&key)).await;
        assert!(retry.is_replay());
        assert_eq!(retry.lasting(), first.lasting());
    }
    assert_eq!(upstream.count(), 5);
}

#[tokio::test]
async fn killed_before_the_request_was_whole_the_retry_is_the_first_to_run() {
    let upstream = Upstream::start();
    let (gateway, home, config) = start(&upstream).await;
    let mut client = Client::connect(gateway.address).await;
    let whole = post("k").bytes();
    client.send_bytes(&whole[..whole.len() - 1]).await;
    gateway.metric_is("oncegate_connections", &[], 1.0).await;
    gateway.kill();

    let gateway = home.start(&config).await;
    let retry = gateway.ask(&post("k")).await;

    assert_eq!((retry.status, retry.is_replay(), upstream.count()), (201, false, 1));
}

const ROUNDS: usize = 20;

/// Waits until the upstream received, or the clients were answered, a number of times that differs
/// from round to round, so that the kill falls on every step of a request's life.
async fn moment(round: usize, upstream: &Upstream, load: &Load) {
    let count = 1 + round * 7 % 40;
    if round.is_multiple_of(2) {
        upstream.received(upstream.count() + count).await;
    } else {
        load.answered(count).await;
    }
}

fn is_unknown(answer: &Answer) -> bool {
    answer.status == 409 && answer.code() == "outcome-unknown"
}

#[tokio::test]
async fn whenever_it_is_killed_no_key_runs_twice_and_no_answer_is_lost() {
    let upstream = Upstream::start();
    let (mut gateway, home, config) = start(&upstream).await;
    let (mut replayed, mut unknown, mut fresh) = (0, 0, 0);
    for round in 0..ROUNDS {
        let load = Load::start(gateway.address, format!("round-{round}"));
        moment(round, &upstream, &load).await;
        gateway.kill();
        let known = load.broken().await;

        gateway = home.start(&config).await;
        let mut client = Client::connect(gateway.address).await;
        for (key, answer) in known {
            let request = post(&key);
            client.send(&request).await;
            let retry = client.answer().await;
            match answer {
                Some(answer) => {
                    assert!(retry.is_replay(), "{key} in round {round}: {retry:?}");
                    assert_eq!(retry.lasting(), answer.lasting(), "{key} in round {round}");
                    replayed += 1;
                }
                // It was never sent, its answer was stored but not seen, or nobody knows.
                None if is_unknown(&retry) => unknown += 1,
                None => {
                    assert_eq!(retry.status, 201, "{key} in round {round}: {retry:?}");
                    fresh += 1;
                }
            }
            assert!(upstream.executions(&key) <= 1, "{key} in round {round} ran twice");
        }
    }
    println!("{replayed} replayed, {unknown} unknown, {fresh} fresh or unseen");
    assert!(replayed > 0 && unknown > 0, "the kills missed: {replayed}, {unknown}, {fresh}");
}
