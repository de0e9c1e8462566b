//! A gateway that is told to stop finishes what it began.

use rustix::process::Signal;
use tokio::net::TcpStream;

use crate::support::{Client, Config, Gateway, Home, Upstream, get, post, soon};

const STOPS: &str = "gateway stops: finishing what is in flight";

/// A gateway with a keyed request at the upstream.
async fn busy(upstream: &Upstream, top: &str) -> (Gateway, Home, Config, Client) {
    let config = Config::to(upstream.address).durable().top(top);
    let (gateway, home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    (gateway, home, config, client)
}

async fn refuses_connections(gateway: &Gateway) {
    let refused = async { while TcpStream::connect(gateway.address).await.is_ok() {} };
    soon("the listener to close", refused).await;
}

// R38
#[tokio::test]
async fn what_is_in_flight_is_finished_and_stored_while_newcomers_are_refused() {
    for signal in [Signal::TERM, Signal::INT] {
        let upstream = Upstream::holding();
        let (gateway, home, config, mut client) = busy(&upstream, "drain_timeout: 30s").await;
        let mut idle = Client::connect(gateway.address).await;
        idle.send(&get("/v1/charges/../x")).await;
        assert_eq!(idle.answer().await.status, 400);

        gateway.signal(signal);
        gateway.logged(STOPS).await;
        refuses_connections(&gateway).await;
        assert!(idle.is_closed().await);
        drop(idle);
        let ready = gateway.ask_admin("/readyz").await;
        assert_eq!((ready.status, &*ready.body), (503, &b"not ready: draining\n"[..]));
        assert_eq!(gateway.ask_admin("/livez").await.status, 200);
        upstream.go();
        let first = client.answer().await;

        assert_eq!((first.status, first.header("connection")), (201, Some("close")));
        drop(client);
        assert_eq!(gateway.exit_code().await, 0);
        let gateway = home.start(&config).await;
        assert_eq!(gateway.ask(&post("k")).await.lasting(), first.lasting());
        assert_eq!(upstream.count(), 1);
    }
}

#[tokio::test]
async fn an_execution_whose_client_left_is_finished_too() {
    let upstream = Upstream::holding();
    let (gateway, home, config, client) = busy(&upstream, "drain_timeout: 30s").await;
    drop(client);
    gateway.signal(Signal::TERM);
    gateway.logged(STOPS).await;
    upstream.go();
    assert_eq!(gateway.exit_code().await, 0);
    let gateway = home.start(&config).await;
    assert!(gateway.ask(&post("k")).await.is_replay());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn what_is_not_over_in_time_is_told_and_left_unknown() {
    let upstream = Upstream::holding();
    let (gateway, home, config, mut client) = busy(&upstream, "drain_timeout: 100ms").await;
    gateway.signal(Signal::TERM);

    let told = client.answer().await;

    assert_eq!((told.status, told.code().as_str()), (503, "session-lost"));
    assert_eq!(told.json()["outcome"], "unknown");
    assert_eq!(told.header("retry-after"), Some("2"));
    drop(client);
    gateway.logged("outcome of the key is unknown").await;
    assert_eq!(gateway.exit_code().await, 0);
    let gateway = home.start(&config).await;
    assert_eq!(gateway.ask(&post("k")).await.code(), "outcome-unknown");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_second_signal_ends_the_drain() {
    let upstream = Upstream::holding();
    let (gateway, home, config, mut client) = busy(&upstream, "drain_timeout: 10m").await;
    gateway.signal(Signal::TERM);
    gateway.logged(STOPS).await;
    gateway.signal(Signal::TERM);
    assert_eq!(client.answer().await.code(), "session-lost");
    drop(client);
    assert_eq!(gateway.exit_code().await, 0);
    let gateway = home.start(&config).await;
    assert_eq!(gateway.ask(&post("k")).await.code(), "outcome-unknown");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn within_the_drain_delay_it_serves_on_but_says_that_it_is_not_ready() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable().top("drain_delay: 1500ms");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut idle = Client::connect(gateway.address).await;
    gateway.signal(Signal::TERM);
    gateway.logged(STOPS).await;
    assert_eq!(gateway.ask_admin("/readyz").await.status, 503);
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
    idle.send(&post("k")).await;
    assert!(idle.answer().await.is_replay());
    drop(idle);
    assert_eq!(gateway.exit_code().await, 0);
}

#[tokio::test]
async fn an_idle_gateway_stops_at_once() {
    let upstream = Upstream::start();
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address).durable()).await;
    let mut idle = Client::connect(gateway.address).await;
    idle.send(&post("k")).await;
    idle.answer().await;
    gateway.signal(Signal::TERM);
    assert!(idle.is_closed().await);
    drop(idle);
    assert_eq!(gateway.exit_code().await, 0);
}
