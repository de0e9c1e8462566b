//! What the layer promises around any service: here one that counts its calls.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::*;
use crate::{
    BoxError,
    arbiter::{Arbiter, Budget, Limits, Permits},
    domain::{Clock, ScopeRule, ScopeSource, Timestamp},
    gateway::ResponseBody,
    ledger::embedded::{self, Durability, Embedded, Sweep},
    telemetry::{KeyNaming, Outcome, trace::Tracer},
};

type Answer = Response<ResponseBody<Full<Bytes>>>;

/// A layer around a service that counts, with everything it shares.
struct World {
    shared: Shared,
    settings: Settings,
    calls: Arc<AtomicU32>,
}

impl World {
    fn new() -> Self {
        let clock = Clock::following_tokio(Timestamp::from_millis(1_700_000_000_000));
        let ledger = Embedded::with_latency(
            &embedded::Settings {
                durability: Durability::Memory,
                timeout: Duration::from_secs(5),
                clock: clock.clone(),
                sweep: Sweep::default(),
            },
            Duration::from_millis(1),
        );
        let limits = Limits { max_waiters_per_key: 10, replay_cache: 1 << 20 };
        let scope = ScopeRule {
            source: ScopeSource::Headers(vec![http::HeaderName::from_static("x-api-key")]),
            anonymous: false,
        };
        Self {
            shared: Shared {
                arbiter: Arbiter::new(Arc::new(ledger), limits, clock),
                permits: Permits::new(100, 100),
                budget: Budget::new(16 << 20),
                gateway: "test".into(),
                secret: None,
                key_naming: KeyNaming::Plain,
                tracer: Tracer::default(),
            },
            settings: Settings::new("charges", scope),
            calls: Arc::default(),
        }
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Sends `request` through the layer to a service that answers with `answer`.
    async fn send_to<F>(&self, request: Request<Full<Bytes>>, answer: F) -> Answer
    where
        F: Fn(Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, BoxError>,
        F: Clone + Send + Sync + 'static,
    {
        let calls = Arc::clone(&self.calls);
        let inner = service_fn(move |request| {
            calls.fetch_add(1, Ordering::SeqCst);
            let answered = answer(request);
            async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                answered
            }
        });
        let layer = IdempotencyLayer::new(self.shared.clone(), self.settings.clone());
        layer.layer(inner).oneshot(request).await.unwrap()
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        self.send_to(request, |_| Ok(created())).await
    }
}

fn keyed(key: &'static str, body: &'static str) -> Request<Full<Bytes>> {
    Request::post("/v1/charges")
        .header("host", "api.example.com")
        .header("x-api-key", "secret")
        .header("idempotency-key", key)
        .body(Full::from(body))
        .unwrap()
}

fn created() -> Response<Full<Bytes>> {
    Response::builder()
        .status(StatusCode::CREATED)
        .header("location", "/v1/charges/1")
        .header("x-twice", "a")
        .header("x-twice", HeaderValue::from_bytes(b"\xff\xfe").unwrap())
        .header("set-cookie", "session=1")
        .header("www-authenticate", "Basic")
        .header("content-encoding", "gzip")
        .header("idempotency-error-source", "mine")
        .body(Full::from("receipt"))
        .unwrap()
}

async fn read(answer: Answer) -> (http::response::Parts, Bytes) {
    let (parts, body) = answer.into_parts();
    (parts, body.collect().await.unwrap().to_bytes())
}

/// The members of a problem, after a look at what every problem carries.
async fn problem(answer: Answer) -> (StatusCode, Value) {
    let (parts, body) = read(answer).await;
    assert_eq!(parts.headers["content-type"], "application/problem+json");
    assert_eq!(parts.headers["idempotency-error-source"], "gateway");
    assert_eq!(parts.headers["cache-control"], "no-store");
    let members: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(members["status"], parts.status.as_u16());
    let code = members["code"].as_str().unwrap();
    assert_eq!(members["type"], format!("urn:oncegate:problem:{code}"));
    (parts.status, members)
}

// R23, R37, R39, R41, R42
#[tokio::test(start_paused = true)]
async fn a_retry_gets_the_first_answer_again_and_is_told_so() {
    let world = World::new();
    let (first, first_body) = read(world.send(keyed("k", "{}")).await).await;
    let (retry, retry_body) = read(world.send(keyed("k", "{}")).await).await;
    assert_eq!(world.calls(), 1);
    assert_eq!(first_body, "receipt");
    assert_eq!(retry_body, first_body);
    assert_eq!(retry.status, StatusCode::CREATED);
    for name in ["location", "content-encoding", "x-twice", "idempotency-expires"] {
        let lines = |parts: &http::response::Parts| {
            parts.headers.get_all(name).iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(lines(&retry), lines(&first), "{name}");
        assert!(!lines(&retry).is_empty(), "{name}");
    }
    assert_eq!(retry.headers["idempotent-replayed"], "true");
    assert!(!first.headers.contains_key("idempotent-replayed"));
    for name in ["set-cookie", "www-authenticate"] {
        assert!(first.headers.contains_key(name), "{name}");
        assert!(!retry.headers.contains_key(name), "{name}");
    }
    assert!(!first.headers.contains_key("idempotency-error-source"));
    assert_eq!(retry.extensions.get(), Some(&Outcome::Replayed));
}

#[tokio::test(start_paused = true)]
async fn the_wrapped_service_is_told_attempt_and_token_and_gets_the_body_as_it_came() {
    let world = World::new();
    let answer = world
        .send_to(keyed("\"k\"", "{ }"), |request| {
            let headers = request.headers();
            assert_eq!(headers["idempotency-key"], "\"k\"");
            assert_eq!(headers["idempotency-attempt"], "1");
            assert!(headers["idempotency-fencing-token"].to_str().unwrap().parse::<u64>().is_ok());
            Ok(Response::new(request.into_body()))
        })
        .await;
    assert_eq!(read(answer).await.1, "{ }");
}

#[tokio::test(start_paused = true)]
async fn the_key_is_kept_from_the_service_where_the_route_says_so() {
    let mut world = World::new();
    world.settings.forward_key = false;
    let without_key = |request: Request<Full<Bytes>>| {
        assert!(!request.headers().contains_key("idempotency-key"));
        Ok(created())
    };
    assert_eq!(world.send_to(keyed("k", ""), without_key).await.status(), StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn another_method_and_a_request_that_needs_no_key_pass_through() {
    let mut world = World::new();
    let mut get = keyed("k", "");
    *get.method_mut() = Method::GET;
    for _ in 0..2 {
        let answer = world.send(get.clone()).await;
        assert_eq!(answer.extensions().get(), Some(&Outcome::Passed));
    }
    assert_eq!(world.calls(), 2);
    world.settings.required = false;
    let mut unkeyed = keyed("k", "");
    unkeyed.headers_mut().remove("idempotency-key");
    world.send(unkeyed).await;
    assert_eq!(world.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_what_it_is_reaches_neither_ledger_nor_service() {
    let mut world = World::new();
    world.settings.max_request_body = 4;
    let without = |name| {
        let mut request = keyed("k", "{}");
        request.headers_mut().remove(name);
        request
    };
    let cases = [
        (without("idempotency-key"), 400, "key-missing"),
        (keyed("a, b", "{}"), 400, "key-invalid"),
        (without("x-api-key"), 400, "scope-missing"),
        (keyed("k", "12345"), 413, "request-too-large"),
    ];
    for (request, status, code) in cases {
        let (answered, members) = problem(world.send(request).await).await;
        assert_eq!((answered.as_u16(), members["code"].as_str().unwrap()), (status, code));
        assert_eq!(members["outcome"], "not_sent");
        assert_eq!(members["new_key_safe"], true);
        assert_eq!(members["retry_same_key"], false);
    }
    assert_eq!(world.calls(), 0);
    assert_eq!(world.send(keyed("k", "1234")).await.status(), StatusCode::CREATED);
}

// R57
#[tokio::test(start_paused = true)]
async fn the_same_key_with_another_body_is_refused() {
    let world = World::new();
    world.send(keyed("k", "1")).await;
    let (status, members) = problem(world.send(keyed("k", "2")).await).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(members["code"], "key-reused");
    assert_eq!(members["outcome"], "completed");
    assert!(members["detail"].as_str().unwrap().contains("twice"));
    assert_eq!(world.calls(), 1);
}

// R8: an error of a service says nothing about what it did.
#[tokio::test(start_paused = true)]
async fn an_error_of_the_service_makes_the_key_unknown() {
    let world = World::new();
    let broken = |_| Err("broken".into());
    let (status, members) = problem(world.send_to(keyed("k", ""), broken).await).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert_eq!(members["outcome"], "unknown");
    let (status, members) = problem(world.send(keyed("k", "")).await).await;
    assert_eq!((status, members["code"].as_str()), (StatusCode::CONFLICT, Some("outcome-unknown")));
    assert_eq!(world.calls(), 1);
}

// R45, R47, R48
#[tokio::test(start_paused = true)]
async fn an_answer_of_the_bound_is_kept_and_one_byte_more_is_given_once() {
    let mut world = World::new();
    world.settings.max_stored_body = "receipt".len() as u64;
    world.send(keyed("equal", "")).await;
    assert_eq!(read(world.send(keyed("equal", "")).await).await.1, "receipt");

    world.settings.max_stored_body -= 1;
    let (first, body) = read(world.send(keyed("more", "")).await).await;
    assert_eq!((first.status, &*body), (StatusCode::CREATED, &b"receipt"[..]));
    let (status, members) = problem(world.send(keyed("more", "")).await).await;
    assert_eq!((status, members["code"].as_str()), (StatusCode::CONFLICT, Some("not-replayable")));
    assert_eq!(members["outcome"], "completed");
    assert_eq!(world.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn sdks_are_told_not_to_repeat_a_stored_failure() {
    let world = World::new();
    let failed = |_| {
        let mut response = Response::new(Full::from("no"));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        Ok(response)
    };
    for _ in 0..2 {
        let (parts, _) = read(world.send_to(keyed("k", ""), failed).await).await;
        assert_eq!(parts.headers["stripe-should-retry"], "false");
    }
    assert_eq!(world.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_takes_too_long_is_refused_and_holds_no_key() {
    struct Never;
    impl http_body::Body for Never {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
            std::task::Poll::Pending
        }
    }
    impl From<Bytes> for Never {
        fn from(_: Bytes) -> Self {
            Self
        }
    }
    let world = World::new();
    let inner = service_fn(|_: Request<Never>| async { Ok::<_, Infallible>(created()) });
    let layer = IdempotencyLayer::new(world.shared.clone(), world.settings.clone());
    let started = tokio::time::Instant::now();
    let answer = layer.layer(inner).call(keyed("k", "").map(|_| Never)).await.unwrap();
    assert_eq!(started.elapsed(), world.settings.body_timeout);
    let (status, members) = problem(answer).await;
    assert_eq!(
        (status, members["retry_same_key"].as_bool()),
        (StatusCode::REQUEST_TIMEOUT, Some(true))
    );
    assert_eq!(world.send(keyed("k", "")).await.status(), StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn bodies_are_held_within_the_budget_and_given_back() {
    let mut world = World::new();
    world.shared.budget = Budget::new(world.settings.max_stored_body + 1);
    let (status, members) = problem(world.send(keyed("k", "12")).await).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(members["code"], "overloaded");
    assert_eq!(members["outcome"], "not_sent");
    assert_eq!(world.send(keyed("k", "1")).await.status(), StatusCode::CREATED);
    assert_eq!(world.shared.budget.held(), 0);
    assert_eq!(world.shared.permits.taken(), 0);
}
