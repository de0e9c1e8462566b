//! Probes, metrics and the listener as an operator meets them.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::{
    Admin, Api, ApiClient, ApiError, AskError, Directory, HealthError, KeyName, NameError,
    Readiness, Starting, health_check,
    routes::{self, router},
};
use crate::{
    domain::{Clock, KeyId, Secret},
    ledger::{
        Begin, Begun, BoxFuture, Ledger, LedgerError,
        embedded::{Durability, Embedded, Settings, Sweep},
    },
    telemetry::{Metrics, log::DroppedLines},
};

const SOON: Duration = Duration::from_secs(20);

/// A ledger that is only ever asked for its health.
#[derive(Debug)]
struct Patient(Result<(), LedgerError>);

impl Ledger for Patient {
    fn begin(&self, _begin: Begin) -> BoxFuture<'_, Result<Begun, LedgerError>> {
        Box::pin(std::future::pending())
    }

    fn health(&self) -> Result<(), LedgerError> {
        self.0.clone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn healthy() -> Readiness {
    Readiness::new(Arc::new(Patient(Ok(()))))
}

fn ill() -> Readiness {
    let reason = "no session".to_owned();
    Readiness::new(Arc::new(Patient(Err(LedgerError::Unavailable { reason, source: None }))))
}

#[derive(Debug)]
struct Nobody;

impl Directory for Nobody {
    fn key_id(&self, _name: &KeyName) -> Result<KeyId, NameError> {
        Err(NameError::NoRoute)
    }

    fn waiters(&self, _key: &KeyId) -> usize {
        0
    }

    fn longest_call(&self, _route: &str) -> Duration {
        Duration::from_secs(30)
    }

    fn config(&self) -> Arc<str> {
        "{}".into()
    }
}

fn api() -> Api {
    let settings = Settings {
        durability: Durability::Memory,
        timeout: SOON,
        clock: Clock::system(),
        sweep: Sweep::default(),
    };
    let operator = Arc::new(Embedded::open(&settings).unwrap());
    Api { operator, directory: Arc::new(Nobody), token: Some(Secret::new(*b"token")) }
}

fn metrics() -> Metrics {
    Metrics::new(PrometheusBuilder::new().build_recorder().handle(), DroppedLines::default())
}

async fn ask(readiness: &Readiness, request: Request<Body>) -> (StatusCode, Response<String>) {
    let response =
        router(readiness.clone(), metrics(), Some(api())).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    (parts.status, Response::from_parts(parts, String::from_utf8(body).unwrap()))
}

async fn get(readiness: &Readiness, target: &str) -> (StatusCode, String) {
    let (status, response) =
        ask(readiness, Request::get(target).body(Body::empty()).unwrap()).await;
    (status, response.into_body())
}

#[tokio::test]
async fn it_is_ready_while_the_ledger_is_usable() {
    assert_eq!(get(&healthy(), "/readyz").await, (StatusCode::OK, "ok\n".into()));
}

#[tokio::test]
async fn without_a_ledger_it_is_not_ready_and_says_why() {
    let (status, body) = get(&ill(), "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, "not ready: ledger is unavailable: no session\n");
}

#[tokio::test]
async fn a_probe_may_leave_the_ledger_out() {
    assert_eq!(get(&ill(), "/readyz?exclude=ledger").await.0, StatusCode::OK);
    assert_eq!(get(&ill(), "/readyz?x=1&exclude=ledger").await.0, StatusCode::OK);
    assert_eq!(get(&ill(), "/readyz?exclude=else").await.0, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn it_is_not_ready_from_the_moment_it_drains_but_alive() {
    let readiness = healthy();
    readiness.clone().drain();
    for target in ["/readyz", "/readyz?exclude=ledger"] {
        let unready = (StatusCode::SERVICE_UNAVAILABLE, "not ready: draining\n".to_owned());
        assert_eq!(get(&readiness, target).await, unready);
    }
    assert_eq!(get(&readiness, "/livez").await.0, StatusCode::OK);
}

#[tokio::test]
async fn it_is_alive_without_a_ledger() {
    assert_eq!(get(&ill(), "/livez").await, (StatusCode::OK, "ok\n".into()));
}

#[tokio::test]
async fn metrics_are_given_as_prometheus_reads_them() {
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let (status, response) = ask(&healthy(), request).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(response.body().contains("\nprocess_open_fds "), "{}", response.body());
}

#[tokio::test]
async fn an_unknown_path_and_an_unknown_method_get_a_problem() {
    for (request, status, code) in [
        (Request::get("/nothing"), 404, "not-found"),
        (Request::post("/livez"), 405, "method-not-allowed"),
    ] {
        let (answered, response) = ask(&healthy(), request.body(Body::empty()).unwrap()).await;
        assert_eq!(answered, status);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let problem: serde_json::Value = serde_json::from_str(response.body()).unwrap();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["code"], code);
        assert_eq!(problem["type"], format!("urn:oncegate:problem:{code}"));
    }
}

/// A running admin listener's URL, and what ends its start.
async fn start() -> (String, Starting) {
    let (admin, starting) = Admin::bind(([127, 0, 0, 1], 0).into(), metrics()).await.unwrap();
    let url = format!("http://{}", admin.local_address());
    tokio::spawn(admin.serve());
    (url, starting)
}

/// The URL of one that has started.
async fn started(readiness: Readiness) -> String {
    let (url, starting) = start().await;
    starting.end(readiness, Some(api()));
    url
}

#[tokio::test]
async fn until_the_ledger_is_open_it_is_alive_but_not_ready() {
    let (url, starting) = start().await;
    let told = health_check(&url).await.unwrap_err().to_string();
    assert_eq!(told, "answered 503 Service Unavailable: not ready: starting");
    for (target, status) in [
        ("/livez", StatusCode::OK),
        ("/metrics", StatusCode::OK),
        ("/readyz?exclude=ledger", StatusCode::SERVICE_UNAVAILABLE),
        ("/api/v1/keys", StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let request = Request::get(target).body(Body::empty()).unwrap();
        let response = routes::starting(metrics()).oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{target}");
    }

    starting.end(healthy(), None);

    health_check(&url).await.unwrap();
}

#[tokio::test]
async fn probes_and_metrics_need_no_token_and_the_api_does() {
    for target in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(get(&healthy(), target).await.0, StatusCode::OK);
    }
    assert_eq!(get(&healthy(), "/api/v1/keys").await.0, StatusCode::UNAUTHORIZED);
    let request = Request::get("/api/v1/keys").body(Body::empty()).unwrap();
    let without = router(healthy(), metrics(), None).oneshot(request).await.unwrap();
    assert_eq!(without.status(), StatusCode::NOT_FOUND);
}

/// Over a real socket, as the commands ask.
#[tokio::test]
async fn the_client_is_told_what_the_api_says() {
    let url = started(healthy()).await;
    let client = |token: &[u8]| ApiClient::new(url.clone(), Some(&Secret::new(token))).unwrap();
    let page = client(b"token").get("/keys").await.unwrap();
    assert_eq!(page["keys"], serde_json::json!([]));
    let refused = client(b"wrong").get("/keys").await.unwrap_err();
    assert!(matches!(&refused, ApiError::Refused { code, .. } if code == "unauthorized"));
    assert!(!format!("{:?}", client(b"wrong")).contains("wrong"));
    ApiClient::new(url.clone(), Some(&Secret::new(*b"to\nken"))).unwrap_err();
}

#[tokio::test]
async fn the_health_check_tells_what_the_gateway_says() {
    let url = started(healthy()).await;
    health_check(&url).await.unwrap();
    health_check(&format!("{url}/")).await.unwrap();

    let url = started(ill()).await;
    let error = health_check(&url).await.unwrap_err();
    let told = "answered 503 Service Unavailable: not ready: ledger is unavailable: no session";
    assert_eq!(error.to_string(), told);
}

#[tokio::test]
async fn the_health_check_tells_when_nobody_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = health_check(&format!("http://{address}")).await.unwrap_err();
    assert!(matches!(&error, HealthError::NotAsked(AskError::Unreachable { .. })), "{error:?}");
}

#[tokio::test]
async fn the_health_check_refuses_what_is_not_an_http_url() {
    for url in ["", "127.0.0.1:9090", "https://127.0.0.1:9090", "/readyz", "http://"] {
        let error = health_check(url).await.unwrap_err();
        assert!(matches!(&error, HealthError::NotAsked(AskError::Url { .. })), "{url}: {error:?}");
    }
}
