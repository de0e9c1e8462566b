//! What operators see: one access event a request, the lock's events, counts of every row.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Client, Config, Gateway, Step, Upstream, answer, get, post};

fn accesses(gateway: &Gateway) -> Vec<Value> {
    gateway.events().into_iter().filter(|event| event["message"] == "request ended").collect()
}

#[tokio::test]
async fn each_request_is_one_access_event_with_its_fields() {
    let upstream = Upstream::start().await;
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    gateway.ask(&post("k").header("X-Request-Id", "request-1").to("/v1/charges?q=1")).await;
    gateway.counted("executed", 1).await;

    let is_meant =
        |event: &Value| event["request_id"] == "request-1" && event["outcome"].is_string();
    let event = gateway.logged_where("the access event", is_meant).await;

    assert_eq!(event["message"], "request ended");
    assert_eq!(event["method"], "POST");
    assert_eq!(event["path"], "/v1/charges");
    assert_eq!(event["status"], 201);
    assert_eq!(event["outcome"], "executed");
    assert_eq!(event["route"], "charges");
    assert_eq!(event["upstream"], "payments");
    assert!(event["duration"].as_f64().unwrap() > 0.0);
    assert_eq!(accesses(&gateway).len(), 1);
}

#[tokio::test]
async fn each_step_of_a_lock_is_one_event_with_its_fields() {
    let upstream = Upstream::start().await;
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    gateway.ask(&post("k").header("X-Request-Id", "request-1")).await;
    for step in ["acquired", "released"] {
        let event = gateway.logged_where(step, |event| event["event"] == step).await;
        assert_eq!(event["level"], "INFO");
        assert_eq!(event["idempotency_key"], "k");
        assert_eq!(event["route"], "charges");
        assert_eq!(event["request_id"], "request-1");
        assert_eq!(event["attempt"], 1);
        assert!(event["fencing_token"].as_u64().unwrap() > 0);
        assert!(event["gateway"].as_str().unwrap().starts_with("tested-"));
    }
}

#[tokio::test]
async fn no_secret_body_or_query_is_ever_logged() {
    const SECRETS: [&str; 6] =
        ["scope-value", "credential", "body-text", "query-text", "said-upstream", "order-number"];
    let upstream =
        Upstream::always(answer("200 OK", "X-Said: said-upstream\r\n", "said-upstream")).await;
    let config = Config::to(upstream.address)
        .durable()
        .rules("max_stored_body: 100B")
        .top("log: { level: debug, keys: hashed }")
        .top("drain_timeout: 50ms");
    let (gateway, _home) = Gateway::start(&config).await;
    let request = |number: u32| {
        post(&format!("order-number-{number}"))
            .from_caller("scope-value")
            .header("Authorization", "Bearer credential")
            .to("/v1/charges?query-text")
            .body("body-text")
    };
    // Every way that a request can end, as far as one process shows them.
    gateway.ask(&request(1)).await;
    gateway.ask(&request(1)).await;
    gateway.ask(&request(1).body("body-text 2")).await;
    gateway.ask(&request(1).to("/elsewhere?query-text").method("GET")).await;
    gateway.ask(&request(1).header("Idempotency-Key", "order-number-2")).await;
    gateway.ask(&request(1).header("Connection", "X-Api-Key")).await;
    gateway.ask(&request(1).to("/v1/charges/../?query-text")).await;
    let mut client = Client::connect(gateway.address).await;
    client
        .send_bytes(b"GET /?query-text nonsense body-text\r\nAuthorization: credential\r\n\r\n")
        .await;
    client.answer().await;
    upstream.now(|_| answer("200 OK", "", "said-upstream".repeat(20)));
    gateway.ask(&request(3)).await;
    gateway.ask(&request(3)).await;
    for script in [
        vec![Step::Close],
        answer("503 No", "X-Said: said-upstream\r\n", "said-upstream"),
        answer("429 No", "", "said-upstream"),
        vec![Step::Write(b"said-upstream nonsense\r\n\r\n".to_vec())],
    ] {
        let number = 4 + u32::try_from(upstream.count()).unwrap();
        upstream.now(move |_| script.clone());
        gateway.ask(&request(number)).await;
        gateway.ask(&request(number)).await;
    }
    upstream.now(|_| vec![Step::Wait]);
    let mut client = Client::connect(gateway.address).await;
    let count = upstream.count();
    client.send(&request(99)).await;
    upstream.received(count + 1).await;
    gateway.signal(Signal::TERM);
    assert_eq!(client.answer().await.code(), "session-lost");
    gateway.logged("gateway stopped").await;

    let log = gateway.log_text();

    assert!(log.contains("\"acquired\"") && log.contains("request ended"));
    for secret in SECRETS {
        let found = log.lines().find(|line| line.contains(secret));
        assert_eq!(found, None, "{secret} is in the log");
    }
}

#[tokio::test]
async fn every_way_a_request_can_end_is_counted_by_its_name() {
    let upstream = Upstream::start().await;
    let config = Config::to(upstream.address).rules("max_request_body: 20B, max_stored_body: 100B");
    let (gateway, _home) = Gateway::start(&config).await;
    gateway.ask(&post("k")).await;
    gateway.ask(&post("k")).await;
    gateway.ask(&post("k").body("other")).await;
    gateway.ask(&post("k").without("Idempotency-Key")).await;
    gateway.ask(&post("")).await;
    gateway.ask(&post("k").without("X-Api-Key")).await;
    gateway.ask(&post("k").without("Host")).await;
    gateway.ask(&post("k").body([b'x'; 21])).await;
    gateway.ask(&get("/elsewhere")).await;
    upstream.now(|_| answer("200 OK", "", [b'x'; 101]));
    gateway.ask(&post("large")).await;
    gateway.ask(&post("large")).await;
    upstream.now(|_| answer("429 No", "", ""));
    gateway.ask(&post("released")).await;
    upstream.now(|_| answer("504 No", "", ""));
    gateway.ask(&post("unknown")).await;
    gateway.ask(&post("unknown")).await;
    upstream.now(|_| vec![Step::Close]);
    gateway.ask(&post("interrupted")).await;
    for (outcome, count) in [
        ("executed", 2),
        ("replayed", 1),
        ("key_reused", 1),
        ("key_missing", 1),
        ("key_invalid", 1),
        ("scope_missing", 1),
        ("bad_request", 1),
        ("request_too_large", 1),
        ("passed", 1),
        ("not_replayable", 1),
        ("released", 1),
        ("upstream_unknown", 1),
        ("outcome_unknown", 1),
        ("upstream_interrupted", 1),
        ("joined", 0),
    ] {
        gateway.counted(outcome, count).await;
        let labels = [("outcome", outcome)];
        gateway
            .metric_is("oncegate_request_duration_seconds_count", &labels, f64::from(count))
            .await;
    }
    assert!(
        gateway.metric("oncegate_ledger_duration_seconds_count", &[("phase", "begin")]).await > 0.0
    );
    assert!(
        gateway
            .metric("oncegate_upstream_duration_seconds_count", &[("upstream", "payments")])
            .await
            > 0.0
    );
    gateway.metric_is("oncegate_build_info", &[], 1.0).await;
}
