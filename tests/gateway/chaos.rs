//! Things that happen under load: reloads, a drain, a disk that fills, an upstream that breaks.

use std::net::SocketAddr;

use rustix::process::Signal;
use tokio::{net::TcpStream, task::JoinSet};

use crate::support::{
    Answer, Client, Config, Gateway, Known, Load, Step, Upstream, answer, ask, post, soon,
};

/// No key ran twice, and what was answered is the only answer.
async fn holds(gateway: &Gateway, upstream: &Upstream, known: &Known) {
    let mut client = Client::connect(gateway.address).await;
    for (key, first) in known {
        assert!(upstream.executions(key) <= 1, "{key} ran {} times", upstream.executions(key));
        let Some(first) = first.as_ref().filter(|first| first.status == 201) else { continue };
        client.send(&post(key)).await;
        let retry = client.answer().await;
        assert!(retry.is_replay(), "{key}: {first:?}, then {retry:?}");
        assert_eq!(retry.lasting(), first.lasting(), "{key}");
    }
}

#[tokio::test]
async fn reloads_under_load_lose_nothing() {
    let (one, two) = (Upstream::start(), Upstream::start());
    let configs = [Config::to(one.address), Config::to(two.address)];
    let (gateway, home) = Gateway::start(&configs[0]).await;
    let load = Load::start(gateway.address, "k");
    for count in 1..=10 {
        load.goes_on().await;
        home.write(&configs[count % 2]);
        gateway.signal(Signal::HUP);
        let applied = [("result", "applied")];
        let count = u32::try_from(count).unwrap();
        gateway.metric_is("oncegate_config_reloads_total", &applied, f64::from(count)).await;
    }
    load.goes_on().await;

    let known = load.stopped().await;

    for (key, answer) in &known {
        let answer = answer.as_ref().unwrap_or_else(|| panic!("{key} was not answered"));
        assert_eq!((answer.status, answer.is_replay()), (201, false), "{key}");
        assert_eq!(one.executions(key) + two.executions(key), 1, "{key}");
    }
    assert!(one.count() > 0 && two.count() > 0);
}

/// After a drain each key that ran was answered, and each other one may run now.
async fn leaves_no_doubt(gateway: &Gateway, upstream: &Upstream, known: &Known) {
    holds(gateway, upstream, known).await;
    for (key, first) in known {
        let ran = upstream.executions(key);
        assert!(first.is_some() || ran == 0, "{key} ran, but its client was not answered");
        let retry = gateway.ask(&post(key)).await;
        assert_eq!((retry.status, retry.is_replay()), (201, ran == 1), "{key}: {retry:?}");
    }
}

// R38
#[tokio::test]
async fn a_drain_under_load_leaves_no_key_in_doubt() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable();
    let (gateway, home) = Gateway::start(&config).await;
    let load = Load::start(gateway.address, "k");
    load.goes_on().await;
    gateway.signal(Signal::TERM);
    let known = load.broken().await;
    assert_eq!(gateway.exit_code().await, 0);

    let gateway = home.start(&config).await;

    leaves_no_doubt(&gateway, &upstream, &known).await;
}

/// Sends fresh keys, each over a connection of its own, until none is to be had.
async fn newcomers(address: SocketAddr, name: usize) -> Known {
    let mut known = Known::new();
    for number in 0.. {
        let Ok(stream) = TcpStream::connect(address).await else { break };
        let (mut client, request) = (Client::over(stream), post(&format!("k-{name}-{number}")));
        let answer = if client.try_send(&request).await {
            client.try_answer_to(&request).await
        } else {
            None
        };
        known.insert(format!("k-{name}-{number}"), answer);
    }
    known
}

#[tokio::test]
async fn a_drain_while_clients_connect_leaves_no_key_in_doubt() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable();
    let (gateway, home) = Gateway::start(&config).await;
    let clients: JoinSet<_> = (0..8).map(|name| newcomers(gateway.address, name)).collect();
    upstream.received(50).await;
    gateway.signal(Signal::TERM);
    let known = soon("the end of the clients", clients.join_all()).await;
    let known = known.into_iter().flatten().collect();
    assert_eq!(gateway.exit_code().await, 0);

    let gateway = home.start(&config).await;

    leaves_no_doubt(&gateway, &upstream, &known).await;
}

#[tokio::test]
async fn a_disk_that_fills_again_and_again_under_load_runs_nothing_twice() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable().ledger("timeout: 50ms");
    let (gateway, home) = Gateway::start(&config).await;
    let load = Load::start(gateway.address, "k");
    for _ in 0..4 {
        load.goes_on().await;
        gateway.limit_files(Some(0));
        load.goes_on().await;
        gateway.limit_files(None);
        let ready = async { while gateway.ask_admin("/readyz").await.status != 200 {} };
        soon("the gateway to be ready", ready).await;
    }
    load.goes_on().await;
    let known = load.stopped().await;

    holds(&gateway, &upstream, &known).await;
    let refused = |answer: &Answer| answer.status == 503 && answer.code() == "ledger-unavailable";
    let refused = known.iter().filter(|(_, first)| first.as_ref().is_some_and(refused));
    let refused: Vec<_> = refused.map(|(key, _)| key).collect();
    assert!(!refused.is_empty(), "the disk was never full");
    for key in refused {
        assert_eq!(upstream.executions(key), 0, "{key} was refused and ran");
        // A disk that is busy now may be slower than this ledger's patience.
        let request = post(key);
        let served = async { while gateway.ask(&request).await.status == 503 {} };
        soon("an answer to a request that was refused", served).await;
        assert_eq!(gateway.ask(&request).await.status, 201, "{key}");
        assert_eq!(upstream.executions(key), 1, "{key}");
    }
    gateway.kill();
    let gateway = home.start(&config).await;
    holds(&gateway, &upstream, &known).await;
}

// R8, R16
#[tokio::test]
async fn an_answer_that_is_cut_after_any_of_its_bytes_runs_once() {
    let whole = answer("201 Created", "Location: /v1/charges/1\r\n", "body").remove(0);
    let Step::Write(whole) = whole else { panic!("an answer is written") };
    let upstream = Upstream::start();
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    for (length, end) in (0..=whole.len()).flat_map(|at| [(at, Step::Close), (at, Step::Reset)]) {
        let script = vec![Step::Write(whole[..length].to_vec()), end.clone()];
        upstream.now(move |_| script.clone());
        let key = format!("{end:?}-{length}");
        let first = gateway.ask(&post(&key)).await;
        let retry = gateway.ask(&post(&key)).await;
        // A reset may overtake the last byte, and a whole answer with it.
        if length == whole.len() && first.status == 201 {
            assert_eq!(retry.lasting(), first.lasting(), "{key}");
        } else {
            assert_eq!(first.code(), "upstream-interrupted", "{key}");
            assert_eq!(retry.code(), "outcome-unknown", "{key}");
        }
        assert_eq!(upstream.executions(&key), 1, "{key}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_after_any_byte_of_its_request_runs_at_most_once() {
    let upstream = Upstream::start();
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let length = post("k-000").bytes().len();
    for sent in 0..=length {
        let request = post(&format!("k-{sent:03}"));
        let mut client = Client::connect(gateway.address).await;
        client.send_bytes(&request.bytes()[..sent]).await;
        drop(client);
        let retry = gateway.ask(&request).await;
        assert_eq!(retry.status, 201, "{sent}: {retry:?}");
        assert_eq!(upstream.executions(&format!("k-{sent:03}")), 1, "{sent}");
    }
}

// R3, R34
#[tokio::test]
async fn of_many_that_may_retry_an_unknown_key_one_runs() {
    let upstream = Upstream::always(vec![Step::Close]);
    let config = Config::to(upstream.address).durable().rules("unknown_outcome: retry");
    let (gateway, home) = Gateway::start(&config).await;
    gateway.ask(&post("k")).await;
    gateway.kill();
    let gateway = home.start(&config).await;
    upstream.now(|_| {
        let mut script = vec![Step::Wait];
        script.extend(answer("201 Created", "", "done"));
        script
    });
    let mut retries = JoinSet::new();
    for _ in 0..50 {
        let address = gateway.address;
        retries.spawn(async move { ask(address, &post("k")).await });
    }
    gateway.waiters(49).await;
    upstream.go();

    let answers = soon("all answers", retries.join_all()).await;

    assert_eq!(upstream.count(), 2);
    assert!(answers.iter().all(|answer| answer.lasting() == answers[0].lasting()));
}
