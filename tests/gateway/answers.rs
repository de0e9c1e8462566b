//! The table of answers: each row's status, code, members and header lines.

use crate::support::{
    Answer, Client, Config, Gateway, Home, Refusing, Request, Step, Upstream, answer, get, post,
};

/// What one row of the table says.
struct Row {
    status: u16,
    code: &'static str,
    retry_after: Option<&'static str>,
    /// `None` for a request without a key.
    outcome: Option<&'static str>,
    retry_same_key: bool,
}

const fn row(status: u16, code: &'static str, outcome: &'static str, retry_same_key: bool) -> Row {
    Row { status, code, retry_after: None, outcome: Some(outcome), retry_same_key }
}

impl Row {
    const fn after(self, seconds: &'static str) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    #[track_caller]
    fn is_told_by(&self, answer: &Answer) {
        assert_eq!(answer.status, self.status, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("idempotency-error-source"), Some("gateway"));
        assert_eq!(answer.header("retry-after"), self.retry_after, "{answer:?}");
        assert_eq!(answer.lines("idempotent-replayed").len(), 0);
        let problem = answer.json();
        assert_eq!(problem["type"], format!("urn:oncegate:problem:{}", self.code), "{problem}");
        assert_eq!(problem["code"], self.code);
        assert_eq!(problem["status"], self.status);
        assert!(!problem["title"].as_str().unwrap().is_empty());
        let detail = problem["detail"].as_str().unwrap();
        let Some(outcome) = self.outcome else {
            assert_eq!(problem["outcome"], serde_json::Value::Null, "{problem}");
            return;
        };
        assert_eq!(problem["outcome"], outcome, "{problem}");
        assert_eq!(problem["retry_same_key"], self.retry_same_key, "{problem}");
        let mirrored = if self.retry_same_key { "true" } else { "false" };
        assert_eq!(answer.header("stripe-should-retry"), Some(mirrored));
        let new_key_safe = matches!(self.status, 400 | 404 | 408 | 413 | 431);
        assert_eq!(problem["new_key_safe"], new_key_safe, "{problem}");
        assert_eq!(detail.contains("new key can run the operation twice"), !new_key_safe);
    }
}

async fn start(rules: &str) -> (Upstream, Gateway, Home) {
    let upstream = Upstream::start();
    let mut config = Config::to(upstream.address);
    if !rules.is_empty() {
        config = config.rules(rules);
    }
    let (gateway, home) = Gateway::start(&config).await;
    (upstream, gateway, home)
}

#[tokio::test]
async fn a_key_that_is_required_but_missing() {
    let (upstream, gateway, _home) = start("").await;
    let request = post("k").without("Idempotency-Key");
    row(400, "key-missing", "not_sent", false).is_told_by(&gateway.ask(&request).await);
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn a_key_that_is_not_required_passes_without_protection() {
    let (upstream, gateway, _home) = start("required: false").await;
    for _ in 0..2 {
        let passed = gateway.ask(&post("k").without("Idempotency-Key")).await;
        assert_eq!(passed.status, 201);
    }
    assert_eq!(upstream.count(), 2);
}

#[tokio::test]
async fn a_key_that_is_empty_malformed_too_long_a_list_with_parameters_or_on_two_lines() {
    let (upstream, gateway, _home) = start("").await;
    let long = "k".repeat(256);
    let keys: [&[u8]; 11] = [
        b"",
        b"\"\"",
        b"a b",
        b"a,b",
        b"\"a\", \"b\"",
        b"\"a\";p=1",
        b"a;p=1",
        b"\"a",
        b"\xff",
        long.as_bytes(),
        b"a\tb",
    ];
    for key in keys {
        let request = post("x").without("Idempotency-Key").header("Idempotency-Key", key);
        row(400, "key-invalid", "not_sent", false).is_told_by(&gateway.ask(&request).await);
    }
    let request = post("a").header("Idempotency-Key", "a");
    row(400, "key-invalid", "not_sent", false).is_told_by(&gateway.ask(&request).await);
    assert_eq!(upstream.count(), 0);
    assert_eq!(gateway.ask(&post(&long[1..])).await.status, 201);
}

#[tokio::test]
async fn a_scope_header_that_is_missing() {
    let (upstream, gateway, _home) = start("").await;
    let request = post("k").without("X-Api-Key");
    row(400, "scope-missing", "not_sent", false).is_told_by(&gateway.ask(&request).await);
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn a_request_that_is_malformed_or_ambiguous() {
    let (upstream, gateway, _home) = start("").await;
    let bad = row(400, "bad-request", "not_sent", false);
    let requests = [
        post("k").header("Host", "other.test"),
        post("k").without("Host"),
        post("k").to("/v1/x/../charges"),
        post("k").to("/v1/%2e%2e/v1/charges"),
        post("k").to("//v1/charges"),
        post("k").to("/v1%2Fcharges"),
        post("k").header("Connection", "Idempotency-Key"),
        post("k").header("Connection", "close, x-api-key"),
        post("k").header("Connection", "host"),
        post("k").header("Connection", "Content-Length"),
    ];
    for request in requests {
        bad.is_told_by(&gateway.ask(&request).await);
    }
    for bytes in [
        "nonsense\r\n\r\n",
        "POST /v1/charges HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST /v1/charges HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST /v1/charges HTTP/1.1\r\nHost: a\r\nX Y: 1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut client = Client::connect(gateway.address).await;
        client.send_bytes(bytes.as_bytes()).await;
        let answer = client.answer().await;
        bad.is_told_by(&answer);
        assert_eq!(answer.header("connection"), Some("close"), "{bytes}");
        assert!(client.is_closed().await);
    }
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn a_request_framed_twice_is_read_by_its_chunks_and_framed_once() {
    let (upstream, gateway, _home) = start("").await;
    let request =
        post("k").body("").header("Content-Length", "30").header("Transfer-Encoding", "chunked");
    let mut client = Client::connect(gateway.address).await;
    client.send(&request).await;
    client.send_bytes(b"2\r\nok\r\n0\r\n\r\nGET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.header("connection"), Some("close"));
    assert!(client.is_closed().await);
    let received = upstream.last();
    assert_eq!(received.body, b"ok");
    assert_eq!(received.header("content-length"), Some("2"));
    assert_eq!(received.header("transfer-encoding"), None);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn no_route() {
    let (upstream, gateway, home) = start("").await;
    let file = std::fs::read_to_string(home.file()).unwrap();
    gateway.kill();
    // Without the route for all else.
    let file = file.split("  - name: plain").next().unwrap();
    let gateway = home.start_with(file).await;
    let problem = gateway.ask(&get("/elsewhere")).await;
    row(404, "no-route", "not_sent", false).is_told_by(&problem);
    let problem = gateway.ask(&post("k").to("/v1/charges-old")).await;
    row(404, "no-route", "not_sent", false).is_told_by(&problem);
    assert_eq!(upstream.count(), 0);
}

// R57
#[tokio::test]
async fn the_same_key_with_another_request() {
    let upstream = Upstream::holding();
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;

    let other = post("k").body("amount=6");
    let in_flight = gateway.ask(&other).await;
    row(422, "key-reused", "in_progress", false).is_told_by(&in_flight);
    upstream.go();
    let first = client.answer().await;
    let completed = gateway.ask(&other).await;

    row(422, "key-reused", "completed", false).is_told_by(&completed);
    assert_eq!(gateway.ask(&post("k")).await.lasting(), first.lasting());
    assert_eq!(upstream.count(), 1);
}

// R72
#[tokio::test]
async fn another_request_under_a_key_whose_outcome_is_unknown() {
    let upstream = Upstream::always(vec![Step::Close]);
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    gateway.ask(&post("k")).await;
    let other = gateway.ask(&post("k").body("amount=6")).await;
    row(422, "key-reused", "unknown", false).is_told_by(&other);
    let same = gateway.ask(&post("k")).await;
    row(409, "outcome-unknown", "unknown", false).is_told_by(&same);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_request_in_flight_whose_wait_runs_out_or_that_is_refused_at_once() {
    for rules in ["in_progress: { wait: 20ms }", "in_progress: reject"] {
        let upstream = Upstream::holding();
        let config = Config::to(upstream.address).rules(rules);
        let (gateway, _home) = Gateway::start(&config).await;
        let mut client = Client::connect(gateway.address).await;
        client.send(&post("k")).await;
        upstream.received(1).await;

        let refused = gateway.ask(&post("k")).await;

        row(409, "in-progress", "in_progress", true).after("1").is_told_by(&refused);
        upstream.go();
        assert_eq!(client.answer().await.status, 201);
        assert!(gateway.ask(&post("k")).await.is_replay());
        assert_eq!(upstream.count(), 1);
    }
}

// R47, R48
#[tokio::test]
async fn an_answer_that_was_too_large_to_keep() {
    let upstream = Upstream::always(answer("200 OK", "", "x".repeat(101)));
    let config = Config::to(upstream.address).rules("max_stored_body: 100B");
    let (gateway, _home) = Gateway::start(&config).await;
    assert_eq!(gateway.ask(&post("k")).await.body.len(), 101);
    let again = gateway.ask(&post("k")).await;
    row(409, "not-replayable", "completed", false).is_told_by(&again);
    assert!(again.json()["detail"].as_str().unwrap().contains("200"));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn no_connection_to_any_endpoint() {
    let refusing = Refusing::new();
    let (gateway, _home) = Gateway::start(&Config::to(refusing.address)).await;
    let keyed = gateway.ask(&post("k")).await;
    row(502, "upstream-unreachable", "not_sent", true).after("1").is_told_by(&keyed);
    let plain = gateway.ask(&get("/elsewhere")).await;
    let unkeyed = Row { outcome: None, ..row(502, "upstream-unreachable", "", true) };
    unkeyed.after("1").is_told_by(&plain);

    let upstream = refusing.listen();
    let retry = gateway.ask(&post("k")).await;
    assert_eq!((retry.status, retry.is_replay(), upstream.count()), (201, false, 1));
}

#[tokio::test]
async fn a_connection_that_breaks_after_bytes_were_sent() {
    let upstream = Upstream::always(vec![Step::Reset]);
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let keyed = gateway.ask(&post("k")).await;
    row(502, "upstream-interrupted", "unknown", true).is_told_by(&keyed);
    let unkeyed = Row { outcome: None, ..row(502, "upstream-interrupted", "", true) };
    unkeyed.is_told_by(&gateway.ask(&get("/elsewhere")).await);
}

// R5, R13, R14
#[tokio::test]
async fn an_upstream_that_does_not_answer_in_time() {
    let upstream = Upstream::always(vec![Step::UntilAborted]);
    let config = Config::to(upstream.address).upstream("request_timeout: 50ms");
    let (gateway, _home) = Gateway::start(&config).await;
    let keyed = gateway.ask(&post("k")).await;
    row(504, "upstream-timeout", "unknown", true).is_told_by(&keyed);
    upstream.aborted(1).await;
    let retry = gateway.ask(&post("k")).await;
    row(409, "outcome-unknown", "unknown", false).is_told_by(&retry);
    assert_eq!(upstream.count(), 1);
    let unkeyed = Row { outcome: None, ..row(504, "upstream-timeout", "", true) };
    unkeyed.is_told_by(&gateway.ask(&get("/elsewhere")).await);
}

#[tokio::test]
async fn too_many_in_flight() {
    let upstream = Upstream::holding();
    let config = Config::to(upstream.address).limits("max_in_flight: 1");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let refused = gateway.ask(&post("other")).await;
    row(503, "overloaded", "not_sent", true).after("1").is_told_by(&refused);
    let unkeyed = Row { outcome: None, ..row(503, "overloaded", "", true).after("1") };
    unkeyed.is_told_by(&gateway.ask(&get("/elsewhere")).await);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn too_many_waiters_for_one_key() {
    let upstream = Upstream::holding();
    let config = Config::to(upstream.address).limits("max_waiters_per_key: 1");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut leader = Client::connect(gateway.address).await;
    leader.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiter = Client::connect(gateway.address).await;
    waiter.send(&post("k")).await;
    gateway.waiters(1).await;

    let refused = gateway.ask(&post("k")).await;

    row(503, "overloaded", "in_progress", true).after("1").is_told_by(&refused);
    upstream.go();
    assert_eq!(leader.answer().await.lasting(), waiter.answer().await.lasting());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn the_upstreams_own_problems_are_not_taken_for_the_gateways() {
    let lines = "Content-Type: application/problem+json\r\nIdempotency-Error-Source: gateway\r\n";
    for status in ["400 Bad Request", "429 Too Many Requests", "502 Bad Gateway"] {
        let upstream = Upstream::always(answer(status, lines, "{}"));
        let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
        for request in [post("k"), get("/elsewhere")] {
            let passed = gateway.ask(&request).await;
            assert_eq!(passed.header("idempotency-error-source"), None, "{passed:?}");
            assert_eq!(passed.body, b"{}");
        }
    }
}

#[tokio::test]
async fn a_connection_is_usable_after_a_refusal() {
    let (upstream, gateway, _home) = start("in_progress: reject").await;
    let mut client = Client::connect(gateway.address).await;
    for (request, status) in [
        (post("k"), 201),
        (post("k").body("amount=6"), 422),
        (post("k").without("Idempotency-Key"), 400),
        (post("k").without("X-Api-Key"), 400),
        (post(""), 400),
        (post("k").to("/v1/../charges"), 400),
        (post("k"), 201),
    ] {
        client.send(&request).await;
        assert_eq!(client.answer().await.status, status, "{request:?}");
    }
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn an_answer_to_head_has_no_body_but_says_its_problem() {
    let refusing = Refusing::new();
    let (gateway, _home) = Gateway::start(&Config::to(refusing.address)).await;
    let mut client = Client::connect(gateway.address).await;
    let request = Request::new("HEAD", "/elsewhere");
    client.send(&request).await;
    assert_eq!(client.answer_to(&request).await.status, 502);
    client.send(&get("/elsewhere")).await;
    assert_eq!(client.answer().await.code(), "upstream-unreachable");
}

#[tokio::test]
async fn a_key_in_the_header_and_of_the_form_that_the_route_asks_for() {
    let rules = "header: X-Request-Key, key: { max_length: 36, format: uuid }";
    let (upstream, gateway, _home) = start(rules).await;
    let with = |key: &str| post("k").without("Idempotency-Key").header("X-Request-Key", key);
    row(400, "key-missing", "not_sent", false).is_told_by(&gateway.ask(&post("k")).await);
    row(400, "key-invalid", "not_sent", false).is_told_by(&gateway.ask(&with("order-1")).await);
    let uuid = "8e03978e-40d5-43dd-bc93-6894a57f9324";
    assert_eq!(gateway.ask(&with(uuid)).await.status, 201);
    assert!(gateway.ask(&with(&format!("\"{uuid}\""))).await.is_replay());
    assert_eq!(upstream.count(), 1);
}
