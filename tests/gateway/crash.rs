//! The gateway is killed at any instant; the file tells the next one what is known.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::task::JoinSet;

use crate::support::{Answer, Client, Config, Gateway, Home, Request, Step, Upstream, post, soon};

async fn start(upstream: &Upstream) -> (Gateway, Home, Config) {
    let config = Config::to(upstream.address).durable();
    let (gateway, home) = Gateway::start(&config).await;
    (gateway, home, config)
}

// R1, R2, R4, R9, R26, R73
#[tokio::test]
async fn killed_while_the_upstream_works_the_outcome_is_unknown_and_nothing_runs_again() {
    let upstream = Upstream::holding().await;
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
    let upstream = Upstream::holding().await;
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
    let upstream = Upstream::always(vec![Step::Close]).await;
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
    let upstream = Upstream::start().await;
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
    let upstream = Upstream::start().await;
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

/// What clients know at a kill: each key that was asked for, with its answer if one came.
type Known = HashMap<String, Option<Answer>>;

const CLIENTS: usize = 8;
const ROUNDS: usize = 20;

/// Each client sends fresh keys over one connection until that breaks, and now and then again
/// what was answered.
async fn load(address: std::net::SocketAddr, round: usize, answered: Arc<AtomicUsize>) -> Known {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let answered = Arc::clone(&answered);
        clients.spawn(async move {
            let mut known = Known::new();
            let mut client = Client::connect(address).await;
            for request in 0.. {
                let key = format!("r{round}-c{number}-{request}");
                known.insert(key.clone(), None);
                let request = post(&key);
                if !client.try_send(&request).await {
                    break;
                }
                let Some(answer) = client.try_answer_to(&request).await else { break };
                known.insert(key, Some(answer));
                answered.fetch_add(1, Ordering::Relaxed);
            }
            known
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

/// Waits until the upstream received, or the clients were answered, a number of times that differs
/// from round to round, so that the kill falls on every step of a request's life.
async fn moment(round: usize, upstream: &Upstream, answered: &AtomicUsize) {
    let count = 1 + round * 7 % 40;
    if round.is_multiple_of(2) {
        upstream.received(upstream.count() + count).await;
    } else {
        let reached = async {
            while answered.load(Ordering::Relaxed) < count {
                tokio::task::yield_now().await;
            }
        };
        soon("answers under load", reached).await;
    }
}

fn is_unknown(answer: &Answer) -> bool {
    answer.status == 409 && answer.code() == "outcome-unknown"
}

#[tokio::test]
async fn whenever_it_is_killed_no_key_runs_twice_and_no_answer_is_lost() {
    let upstream = Upstream::start().await;
    let (mut gateway, home, config) = start(&upstream).await;
    let (mut replayed, mut unknown, mut fresh) = (0, 0, 0);
    for round in 0..ROUNDS {
        let answered = Arc::new(AtomicUsize::new(0));
        let clients = tokio::spawn(load(gateway.address, round, Arc::clone(&answered)));
        moment(round, &upstream, &answered).await;
        gateway.kill();
        let known = soon("the end of the clients", clients).await.unwrap();

        gateway = home.start(&config).await;
        let mut client = Client::connect(gateway.address).await;
        for (key, answer) in known {
            let request: Request = post(&key);
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
