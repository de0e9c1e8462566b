//! SIGHUP reads the file again: all of it, or nothing.

use rustix::process::Signal;

use crate::support::{Client, Config, Gateway, Upstream, get, post};

const REFUSED: &str = "reload refused: the old configuration stays in effect";

async fn reloads(gateway: &Gateway, result: &str, count: u32) {
    let labels = [("result", result)];
    gateway.metric_is("oncegate_config_reloads_total", &labels, f64::from(count)).await;
}

#[tokio::test]
async fn a_route_is_added_without_dropping_what_is_in_flight() {
    let upstream = Upstream::holding();
    let other = Upstream::start();
    let config = Config::to(upstream.address);
    let (gateway, home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let mut idle = Client::connect(gateway.address).await;

    let file = config.text("").replace(
        "upstreams:\n",
        &format!("upstreams:\n  other: {{ endpoints: ['http://{}'] }}\n", other.address),
    );
    let file = file.replace(
        "routes:\n",
        "routes:\n  - { name: new, match: { path_prefix: /new }, upstream: other }\n",
    );
    std::fs::write(home.file(), file).unwrap();
    gateway.signal(Signal::HUP);
    gateway.logged("configuration reloaded").await;

    gateway.metric_is("oncegate_keys_in_flight", &[("route", "charges")], 1.0).await;
    idle.send(&get("/new/1")).await;
    assert_eq!(idle.answer().await.status, 201);
    assert_eq!((other.count(), upstream.count()), (1, 1));
    upstream.go();
    let first = client.answer().await;
    assert_eq!(first.status, 201);
    assert_eq!(gateway.ask(&post("k")).await.lasting(), first.lasting());
    assert_eq!(upstream.count(), 1);
    reloads(&gateway, "applied", 1).await;
    gateway.metric_is("oncegate_keys_in_flight", &[], 0.0).await;
}

#[tokio::test]
async fn another_upstream_gets_what_comes_after_the_reload() {
    let (one, two) = (Upstream::start(), Upstream::start());
    let (gateway, home) = Gateway::start(&Config::to(one.address)).await;
    gateway.ask(&post("a")).await;
    gateway.counted("executed", 1).await;
    home.write(&Config::to(two.address));
    gateway.signal(Signal::HUP);
    gateway.logged("configuration reloaded").await;
    gateway.ask(&post("b")).await;
    assert!(gateway.ask(&post("a")).await.is_replay());
    assert_eq!((one.count(), two.count()), (1, 1));
    // What was counted before stays counted.
    gateway.counted("executed", 2).await;
    gateway.metric_is("oncegate_upstream_duration_seconds_count", &[], 2.0).await;
}

#[tokio::test]
async fn limits_and_rules_of_the_file_are_in_effect_after_the_reload() {
    let upstream = Upstream::holding();
    let (gateway, home) = Gateway::start(&Config::to(upstream.address)).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let tight =
        Config::to(upstream.address).limits("max_in_flight: 1").rules("max_request_body: 4B");
    home.write(&tight);
    gateway.signal(Signal::HUP);
    gateway.logged("configuration reloaded").await;
    assert_eq!(gateway.ask(&post("b")).await.code(), "overloaded");
    upstream.go();
    assert_eq!(client.answer().await.status, 201);
    assert_eq!(gateway.ask(&post("b")).await.code(), "request-too-large");
}

#[tokio::test]
async fn a_bad_file_is_refused_and_the_old_one_stays() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address);
    let (gateway, home) = Gateway::start(&config).await;
    std::fs::write(home.file(), "listen: nonsense").unwrap();
    gateway.signal(Signal::HUP);
    gateway.logged(REFUSED).await;
    reloads(&gateway, "refused", 1).await;
    std::fs::remove_file(home.file()).unwrap();
    gateway.signal(Signal::HUP);
    reloads(&gateway, "refused", 2).await;
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
    home.write(&config);
    gateway.signal(Signal::HUP);
    reloads(&gateway, "applied", 1).await;
    assert!(gateway.ask(&post("k")).await.is_replay());
}

#[tokio::test]
async fn a_change_of_what_a_key_is_or_of_a_listener_is_refused_and_said() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address);
    let (gateway, home) = Gateway::start(&config).await;
    gateway.ask(&post("k")).await;
    let file = config.text("");
    let changes = [
        ("scope: [X-Api-Key]", "scope: [X-Tenant]", "scope"),
        ("scope: [X-Api-Key]", "scope: [X-Api-Key], namespace: new", "namespace"),
        ("scope: [X-Api-Key]", "scope: [X-Api-Key], header: X-Key", "header"),
        ("- name: charges", "- name: renamed", "namespace"),
        ("listen: { address: '127.0.0.1:0'", "listen: { address: '127.0.0.1:1'", "listen"),
        ("admin: { address: '127.0.0.1:0' }", "admin: { address: '127.0.0.1:1' }", "admin"),
        ("gateway_id: tested", "key_secret: \"0123456789abcdef0123456789abcdef\"", "key_secret"),
        ("durability: memory", "path: other.redb", "ledger"),
    ];
    for (count, (from, to, named)) in (1..).zip(changes) {
        assert!(file.contains(from), "{from} in {file}");
        std::fs::write(home.file(), file.replacen(from, to, 1)).unwrap();
        gateway.signal(Signal::HUP);
        reloads(&gateway, "refused", count).await;
        let is_named = |event: &serde_json::Value| {
            event["message"] == REFUSED && event["reason"].as_str().unwrap().contains(named)
        };
        gateway.logged_where(&format!("a refusal that names {named}"), is_named).await;
        assert!(gateway.ask(&post("k")).await.is_replay());
    }
    assert_eq!(upstream.count(), 1);
}
