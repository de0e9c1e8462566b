//! What makes a retry the same request, and what makes a caller another one.

use crate::support::{Answer, Config, Gateway, Home, Request, Upstream, post};

async fn start(rules: &str) -> (Upstream, Gateway, Home) {
    let upstream = Upstream::start().await;
    let mut config = Config::to(upstream.address);
    if !rules.is_empty() {
        config = config.rules(rules);
    }
    let (gateway, home) = Gateway::start(&config).await;
    (upstream, gateway, home)
}

fn is_refused(answer: &Answer) -> bool {
    answer.status == 422 && answer.code() == "key-reused"
}

fn json(body: &str) -> Request {
    post("k").header("Content-Type", "application/json").body(body)
}

// R54, R57, R58
#[tokio::test]
async fn another_body_path_query_method_or_host_is_another_request() {
    let (upstream, gateway, _home) = start("").await;
    let first = gateway.ask(&post("k")).await;
    for other in [
        post("k").body("amount=6"),
        post("k").body(""),
        post("k").to("/v1/charges/2"),
        post("k").to("/v1/charges/"),
        post("k").to("/v1/charges?confirm=1"),
        post("k").method("PATCH"),
        post("k").without("Host").header("Host", "other.test"),
    ] {
        let answer = gateway.ask(&other).await;
        assert!(is_refused(&answer), "{other:?}: {answer:?}");
    }
    let retry = gateway.ask(&post("k").header("X-Other", "1")).await;
    assert_eq!(retry.lasting(), first.lasting());
    assert!(retry.is_replay());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn headers_that_the_route_names_are_compared() {
    let (upstream, gateway, _home) = start("fingerprint: { headers: [X-Currency] }").await;
    gateway.ask(&post("k").header("X-Currency", "EUR")).await;
    assert!(is_refused(&gateway.ask(&post("k").header("X-Currency", "USD")).await));
    assert!(is_refused(&gateway.ask(&post("k")).await));
    assert!(gateway.ask(&post("k").header("X-Currency", "EUR")).await.is_replay());
    assert_eq!(upstream.count(), 1);
}

// R51
#[tokio::test]
async fn json_is_compared_by_meaning_and_forwarded_as_it_came() {
    let rules = "fingerprint: { body: json, ignore: [/meta/sent_at] }";
    let (upstream, gateway, _home) = start(rules).await;
    let body = "{ \"b\": 1.0, \"a\": [true, null], \"meta\": {\"sent_at\": 1} }";
    gateway.ask(&json(body)).await;
    assert_eq!(upstream.last().body, body.as_bytes());
    for same in [
        "{\"a\":[true,null],\"b\":1,\"meta\":{\"sent_at\":1}}",
        "{\"meta\":{},\"a\":[true,null],\"b\":1e0}",
        "{\"meta\":{\"sent_at\":2},\"a\":[true,null],\"b\":10E-1}",
    ] {
        assert!(gateway.ask(&json(same)).await.is_replay(), "{same}");
    }
    for other in [
        "{\"a\":[true,null],\"b\":1}",
        "{\"a\":[null,true],\"b\":1,\"meta\":{}}",
        "{\"a\":[true,null],\"b\":\"1\",\"meta\":{}}",
        "{\"a\":[true,null],\"b\":1,\"meta\":{\"x\":null}}",
        "{\"a\":[true,null],\"b\":1.0000000000000000001,\"meta\":{}}",
        "{\"a\":[true,null],\"b\":1,\"meta\":{}",
    ] {
        assert!(is_refused(&gateway.ask(&json(other)).await), "{other}");
    }
    assert_eq!(upstream.count(), 1);
}

// R52
#[tokio::test]
async fn another_multipart_boundary_is_no_other_request() {
    let (upstream, gateway, _home) = start("fingerprint: { body: multipart }").await;
    let upload = |boundary: &str, content: &str| {
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n\
             {content}\r\n--{boundary}--\r\n"
        );
        let kind = format!("multipart/form-data; boundary={boundary}");
        post("k").header("Content-Type", kind).body(body)
    };
    gateway.ask(&upload("one", "content")).await;
    assert!(gateway.ask(&upload("two", "content")).await.is_replay());
    assert!(is_refused(&gateway.ask(&upload("two", "other")).await));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn forms_are_compared_by_their_fields() {
    let (upstream, gateway, _home) = start("fingerprint: { body: form }").await;
    let form = |body: &str| {
        post("k").header("Content-Type", "application/x-www-form-urlencoded").body(body)
    };
    gateway.ask(&form("amount=5&note=a+b")).await;
    assert!(gateway.ask(&form("amount=5&note=a%20b")).await.is_replay());
    assert!(is_refused(&gateway.ask(&form("amount=6&note=a+b")).await));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_route_that_compares_no_body_replays_to_any() {
    let (upstream, gateway, _home) = start("fingerprint: { body: none }").await;
    gateway.ask(&post("k")).await;
    assert!(gateway.ask(&post("k").body("amount=6")).await.is_replay());
    assert_eq!(upstream.count(), 1);
}

// R59, R62, R64, R67
#[tokio::test]
async fn two_callers_never_meet() {
    let (upstream, gateway, _home) = start("").await;
    for caller in ["alice", "bob", "alice, bob", "Alice"] {
        let request = post("k").from_caller(caller);
        let first = gateway.ask(&request).await;
        assert!(!first.is_replay(), "{caller}");
        assert!(gateway.ask(&request).await.is_replay());
    }
    // Two lines are not the one line that joins them.
    let lines = post("k").from_caller("alice").header("X-Api-Key", "bob");
    assert!(!gateway.ask(&lines).await.is_replay());
    assert_eq!(upstream.count(), 5);
}

#[tokio::test]
async fn a_key_of_one_route_is_not_that_of_another() {
    let upstream = Upstream::start().await;
    let route = |name: &str, space: &str| {
        format!(
            "name: {name}, match: {{ path_prefix: /{name} }}, \
             idempotency: {{ scope: none, namespace: {space} }}"
        )
    };
    let config = Config::to(upstream.address)
        .route(&route("a", "one"))
        .route(&route("b", "two"))
        .route(&route("c", "two"));
    let (gateway, _home) = Gateway::start(&config).await;
    assert_eq!(gateway.ask(&post("k").to("/a")).await.status, 201);
    assert_eq!(gateway.ask(&post("k").to("/b")).await.status, 201);
    // Routes that share a namespace share their keys.
    assert!(is_refused(&gateway.ask(&post("k").to("/c")).await));
    assert_eq!(upstream.count(), 2);
}

#[tokio::test]
async fn anonymous_callers_share_one_scope_that_is_no_callers() {
    let (upstream, gateway, _home) = start("scope_missing: anonymous").await;
    let anonymous = post("k").without("X-Api-Key");
    assert!(!gateway.ask(&anonymous).await.is_replay());
    assert!(gateway.ask(&anonymous).await.is_replay());
    // An empty line identifies nobody either.
    assert!(gateway.ask(&post("k").from_caller("")).await.is_replay());
    assert!(!gateway.ask(&post("k").from_caller("anonymous")).await.is_replay());
    assert_eq!(upstream.count(), 2);
}

// R56
#[tokio::test]
async fn a_retry_is_compared_by_the_recipe_of_its_first_request() {
    let upstream = Upstream::start().await;
    let before = Config::to(upstream.address).durable().rules("fingerprint: { body: json }");
    let (gateway, home) = Gateway::start(&before).await;
    let first = gateway.ask(&json("{\"a\":1,\"b\":2}")).await;
    gateway.kill();

    let after =
        Config::to(upstream.address).durable().rules("fingerprint: { headers: [X-Currency] }");
    let gateway = home.start(&after).await;

    let honest = json("{\"b\":2.0, \"a\":1}").header("X-Currency", "EUR");
    assert_eq!(gateway.ask(&honest).await.lasting(), first.lasting());
    assert!(is_refused(&gateway.ask(&json("{\"a\":2,\"b\":2}")).await));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn methods_that_are_not_keyed_pass_with_their_key() {
    let (upstream, gateway, _home) = start("").await;
    for method in ["GET", "PUT", "DELETE"] {
        for _ in 0..2 {
            let passed = gateway.ask(&post("k").method(method)).await;
            assert_eq!((passed.status, passed.is_replay()), (201, false), "{method}");
        }
    }
    assert_eq!(upstream.count(), 6);
}
