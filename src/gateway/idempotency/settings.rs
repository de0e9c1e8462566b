//! What one route decided about its keyed requests.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, Method};
use uuid::Uuid;

use crate::{
    arbiter::{self, Arbiter, Budget, Permits, Policy, Responses},
    domain::{BodyMode, Clock, KeyFormat, KeyRules, Recipe, Retention, ScopeRule, Secret},
    ledger::{Ledger, Takeover},
    telemetry::{KeyNaming, RouteMetrics, trace::Tracer},
};

const MIB: u64 = 1024 * 1024;

/// What all routes of a gateway share.
#[derive(Clone, Debug)]
pub struct Shared {
    pub arbiter: Arbiter,
    pub permits: Permits,
    /// Over the bodies held at once, of requests and answers.
    pub budget: Budget,
    /// The gateway's id with its random suffix, written into every intent.
    pub gateway: Arc<str>,
    /// HMAC key for key ids and fingerprints.
    pub secret: Option<Arc<Secret>>,
    pub key_naming: KeyNaming,
    /// Off by default.
    pub tracer: Tracer,
}

/// One route's settings. [`Settings::new`] has the defaults of the configuration file.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The route's name, for people and metrics.
    pub route: Arc<str>,
    /// Keys of different namespaces are different keys.
    pub namespace: Arc<str>,
    /// Whose keys these are. There is no default: an unscoped key answers one caller with
    /// another's response.
    pub scope: ScopeRule,
    /// Methods whose requests are keyed; others pass through.
    pub methods: Vec<Method>,
    /// The request header that carries the key.
    pub header: HeaderName,
    /// Whether a request without a key is refused; else it passes through.
    pub required: bool,
    pub key: KeyRules,
    pub recipe: Arc<Recipe>,
    pub policy: Arc<Policy>,
    /// How long a request waits for another one with its key; `None` refuses at once.
    pub wait: Option<Duration>,
    /// Bytes; a larger request is refused before anything else.
    pub max_request_body: u64,
    /// Bytes; a larger answer leaves a tombstone. Equal is kept.
    pub max_stored_body: u64,
    /// For the whole body of a keyed request.
    pub body_timeout: Duration,
    /// Whether the wrapped service sees the key.
    pub forward_key: bool,
    /// Marks a replayed answer.
    pub replay_header: HeaderName,
    /// Answer headers that are not kept, beside those that never are.
    pub drop_headers: Vec<HeaderName>,
    pub opens_gate: OpensGate,
    pub metrics: RouteMetrics,
}

/// Who says that the first byte of an attempt goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpensGate {
    /// The layer, before it calls the wrapped service: right for any service.
    Layer,
    /// The wrapped service, through the [`Gate`](crate::ledger::Gate) among the request's
    /// extensions. It may then tell "not sent" from "unknown" to the byte.
    Service,
}

// === impl Shared ===

impl Shared {
    /// Around `ledger`, with the limits that the configuration file has by default. The fields
    /// are there to be set.
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        let limits = arbiter::Limits { max_waiters_per_key: 100, replay_cache: 64 * MIB };
        Self {
            arbiter: Arbiter::new(ledger, limits, Clock::system()),
            permits: Permits::new(10_000, 1_000),
            budget: Budget::new(512 * MIB),
            gateway: Uuid::new_v4().to_string().into(),
            secret: None,
            key_naming: KeyNaming::default(),
            tracer: Tracer::default(),
        }
    }
}

// === impl Settings ===

impl Settings {
    pub fn new(route: &str, scope: ScopeRule) -> Self {
        let retention = Retention {
            completed: Duration::from_hours(24),
            unknown: Some(Duration::from_hours(7 * 24)),
        };
        Self {
            route: Arc::from(route),
            namespace: Arc::from(route),
            scope,
            methods: vec![Method::POST, Method::PATCH],
            header: HeaderName::from_static("idempotency-key"),
            required: true,
            key: KeyRules { max_length: 255, format: KeyFormat::Any },
            recipe: Arc::new(Recipe {
                version: Recipe::VERSION,
                body: BodyMode::Raw,
                headers: Vec::new(),
                authority: true,
            }),
            policy: Arc::new(Policy {
                takeover: Takeover::Never,
                retention,
                responses: Arc::new(Responses::default()),
                settles: false,
            }),
            wait: Some(Duration::from_secs(10)),
            max_request_body: 1024 * 1024,
            max_stored_body: 64 * 1024,
            body_timeout: Duration::from_secs(30),
            forward_key: true,
            replay_header: HeaderName::from_static("idempotent-replayed"),
            drop_headers: Vec::new(),
            opens_gate: OpensGate::Layer,
            metrics: RouteMetrics::new(route),
        }
    }
}
