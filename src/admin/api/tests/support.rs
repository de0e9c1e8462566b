//! An API, keys in each state, and requests to it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{body::Body, extract::ConnectInfo};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, header, request::Builder};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::super::{Api, router};
use crate::{
    admin::{Directory, KeyName, NameError},
    domain::{
        BodyMode, Cause, Clock, Fingerprint, KeyId, Origin, Recipe, Retention, ScopeMissing,
        Secret, Subject, Timestamp,
    },
    ledger::{
        Begin, Begun, Hold, Ledger, Takeover,
        embedded::{Durability, Embedded, Settings, Sweep},
    },
};

pub(super) const TOKEN: &str = "operator-token";

pub(super) struct Harness {
    pub(super) ledger: Arc<Embedded>,
    pub(super) api: Api,
    pub(super) asked: Arc<Mutex<Vec<KeyName>>>,
}

/// An answer of the API.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

/// Names key number 1, and notes for whom.
#[derive(Debug)]
struct Numbered(Arc<Mutex<Vec<KeyName>>>);

impl Directory for Numbered {
    fn key_id(&self, name: &KeyName) -> Result<KeyId, NameError> {
        self.0.lock().unwrap().push(name.clone());
        match &*name.route {
            "charges" if name.scope.contains_key("x-api-key") => Ok(KeyId::from_bytes([1; 32])),
            "charges" => Err(ScopeMissing(header::HeaderName::from_static("x-api-key")).into()),
            "plain" => Err(NameError::NotKeyed),
            _ => Err(NameError::NoRoute),
        }
    }

    fn waiters(&self, _key: &KeyId) -> usize {
        3
    }

    fn longest_call(&self, _route: &str) -> Duration {
        Duration::from_secs(30)
    }

    fn config(&self) -> Arc<str> {
        r#"{"admin":{"token":"<hidden>"}}"#.into()
    }
}

fn settings(clock: Clock) -> Settings {
    let timeout = Duration::from_secs(5);
    Settings { durability: Durability::Memory, timeout, clock, sweep: Sweep::default() }
}

pub(super) fn id(key: u8) -> String {
    KeyId::from_bytes([key; 32]).to_string()
}

// === impl Harness ===

impl Harness {
    pub(super) fn new(token: Option<&str>) -> Self {
        let ledger = Embedded::open(&settings(Clock::system())).unwrap();
        Self::over(ledger, token)
    }

    /// Each step of the ledger takes `latency`, in paused time.
    pub(super) fn slow(latency: Duration) -> Self {
        let clock = Clock::following_tokio(Timestamp::from_millis(0));
        Self::over(Embedded::with_latency(&settings(clock), latency), None)
    }

    fn over(ledger: Embedded, token: Option<&str>) -> Self {
        let ledger = Arc::new(ledger);
        let asked = Arc::<Mutex<Vec<KeyName>>>::default();
        let api = Api {
            operator: Arc::clone(&ledger) as _,
            directory: Arc::new(Numbered(Arc::clone(&asked))),
            token: token.map(|token| Secret::new(token.as_bytes())),
        };
        Self { ledger, api, asked }
    }

    pub(super) async fn ask(&self, request: Builder, body: impl Into<Body>) -> Answer {
        let peer = ConnectInfo(std::net::SocketAddr::from(([127, 0, 0, 1], 5)));
        let request = request.extension(peer).body(body.into()).unwrap();
        let response = router(self.api.clone()).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(super) async fn get(&self, target: &str) -> Answer {
        self.ask(local(Method::GET, target), Body::empty()).await
    }

    pub(super) async fn post(&self, target: &str, body: &Value) -> Answer {
        let request = local(Method::POST, target).header("content-type", "application/json");
        self.ask(request, body.to_string()).await
    }

    /// An attempt under key number `key`, its first byte sent.
    pub(super) async fn executing(&self, key: u8, takeover: Takeover) -> Hold {
        let begun = self.begin(key, takeover).await;
        let Begun::Owner(hold) = begun else { panic!("{begun:?}") };
        hold.gate().open().unwrap();
        hold
    }

    pub(super) async fn left_unknown(&self, key: u8) {
        self.executing(key, Takeover::Never).await.abandon(Cause::TimedOut).await.unwrap();
    }

    pub(super) async fn begin(&self, key: u8, takeover: Takeover) -> Begun {
        let recipe =
            Recipe { version: 1, body: BodyMode::Raw, headers: Vec::new(), authority: true };
        let subject = Subject {
            method: Method::POST,
            authority: "api.example.com".into(),
            path: "/v1/charges".into(),
            query: None,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"amount=100"),
            secret: None,
        };
        let begin = Begin {
            key: KeyId::from_bytes([key; 32]),
            subject: Arc::new(subject),
            fingerprint: Fingerprint { recipe: Arc::new(recipe), digest: [9; 32] },
            origin: Origin {
                route: "charges".into(),
                gateway: "gateway-1".into(),
                request_id: "request-1".into(),
                trace: None,
            },
            retention: Retention {
                completed: Duration::from_hours(24),
                unknown: Some(Duration::from_hours(48)),
            },
            takeover,
            wait_until: None,
            observer: None,
        };
        self.ledger.begin(begin).await.unwrap()
    }
}

/// As a script on this machine asks.
pub(super) fn local(method: Method, target: &str) -> Builder {
    Request::builder().method(method).uri(target).header("host", "127.0.0.1:9090")
}

// === impl Answer ===

impl Answer {
    pub(super) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}
