//! Who may use the API.

use http::{Method, Request};
use serde_json::json;

use super::support::{Answer, Harness, TOKEN, id, local};

const TARGETS: [(&str, Method); 8] = [
    ("/api/v1/keys", Method::GET),
    ("/api/v1/keys/lookup", Method::POST),
    ("/api/v1/keys/0", Method::GET),
    ("/api/v1/keys/0/resolve", Method::POST),
    ("/api/v1/keys/0/release", Method::POST),
    ("/api/v1/ensemble", Method::GET),
    ("/api/v1/config", Method::GET),
    ("/api/v1/openapi.json", Method::GET),
];

fn was_let_in(answer: &Answer) -> bool {
    !matches!(answer.status, 401 | 403)
}

#[tokio::test]
async fn with_a_token_every_path_needs_it() {
    let harness = Harness::new(Some(TOKEN));
    for (target, method) in TARGETS {
        for credentials in [
            None,
            Some("Bearer"),
            Some("Bearer "),
            Some("Bearer operator-toke"),
            Some("Bearer operator-tokens"),
            Some("Bearer OPERATOR-TOKEN"),
            Some("Basic operator-token"),
            Some("operator-token"),
        ] {
            // Being on this machine is no substitute.
            let mut request = local(method.clone(), target).header("content-type", "text/plain");
            if let Some(credentials) = credentials {
                request = request.header("authorization", credentials);
            }
            let answer = harness.ask(request, "").await;
            assert_eq!((answer.status, answer.code()), (401, "unauthorized"), "{credentials:?}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
        let twice = local(method.clone(), target)
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("authorization", format!("Bearer {TOKEN}"));
        assert_eq!(harness.ask(twice, "").await.status, 401);
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let request = Request::builder()
                .method(method.clone())
                .uri(target)
                .header("host", "admin.example.com")
                .header("authorization", format!("{scheme} {TOKEN}"));
            assert!(was_let_in(&harness.ask(request, "").await), "{scheme} {target}");
        }
    }
}

#[tokio::test]
async fn without_a_token_only_a_loopback_host_is_answered() {
    let harness = Harness::new(None);
    for (target, method) in TARGETS {
        for (host, is_let_in) in [
            ("127.0.0.1:9090", true),
            ("127.9.9.9", true),
            ("localhost:9090", true),
            ("LOCALHOST", true),
            ("[::1]:9090", true),
            ("10.0.0.1:9090", false),
            ("evil.example:9090", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("127.0.0.1@evil.example", false),
            ("", false),
        ] {
            let request = Request::builder()
                .method(method.clone())
                .uri(target)
                .header("content-type", "application/json")
                .header("host", host);
            let answer = harness.ask(request, "").await;
            assert_eq!(was_let_in(&answer), is_let_in, "{host} {target}: {answer:?}");
        }
        let without = Request::builder().method(method.clone()).uri(target);
        assert_eq!(harness.ask(without, "").await.code(), "forbidden-host");
        let twice = local(method.clone(), target).header("host", "localhost");
        assert_eq!(harness.ask(twice, "").await.code(), "forbidden-host");
        let absolute = local(method, &format!("http://evil.example{target}"));
        assert_eq!(harness.ask(absolute, "").await.code(), "forbidden-host");
    }
}

#[tokio::test]
async fn without_a_token_a_foreign_page_changes_nothing() {
    let harness = Harness::new(None);
    harness.left_unknown(1).await;
    let target = format!("/api/v1/keys/{}/release", id(1));
    let body = json!({ "reason": "it did not run" }).to_string();
    let write = |origin: &str, content: &str| {
        local(Method::POST, &target).header("origin", origin).header("content-type", content)
    };
    for origin in [
        "http://evil.example",
        "null",
        "https://127.0.0.1:9090",
        "http://127.0.0.1:8000",
        "http://localhost:9090",
    ] {
        let answer = harness.ask(write(origin, "application/json"), body.clone()).await;
        assert_eq!((answer.status, answer.code()), (403, "forbidden-origin"), "{origin}");
    }
    for content in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
        let answer = harness.ask(write("http://127.0.0.1:9090", content), body.clone()).await;
        assert_eq!((answer.status, answer.code()), (415, "unsupported-media-type"), "{content}");
    }
    assert_eq!(harness.get(&format!("/api/v1/keys/{}", id(1))).await.body["state"], "unknown");

    let own = write("http://127.0.0.1:9090", "application/json; charset=utf-8");
    assert_eq!(harness.ask(own, body).await.status, 200);
}
