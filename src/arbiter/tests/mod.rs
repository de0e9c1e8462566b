//! What the arbiter promises, over an embedded ledger with virtual latencies and in paused time.

mod clocks;
mod endings;
mod joining;
mod sweeps;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tokio::time::{Instant, sleep};

use super::{
    Arbiter, Attempt, Budget, Call, Disposition, Execution, Limits, Permits, Policy, Refusal,
    Responses, Verdict,
};
use crate::{
    domain::{
        BodyMode, Clock, IdempotencyKey, KeyFormat, KeyId, KeyRules, Origin, Recipe, Retention,
        Scope, ScopeRule, ScopeSource, StoredBody, StoredResponse, Subject, Timestamp,
    },
    ledger::{
        Takeover,
        embedded::{Durability, Embedded, Settings, Sweep},
    },
    telemetry::{KeyNaming, RouteMetrics, trace::Trace},
};

/// How long the ledger takes for each step, the upstream for its work, and a request waits.
const STEP: Duration = Duration::from_millis(2);
const WORK: Duration = Duration::from_millis(10);
const WAIT: Duration = Duration::from_secs(10);

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// An arbiter with its ledger, and the upstream's counter.
#[derive(Clone)]
struct World {
    arbiter: Arbiter,
    ledger: Arc<Embedded>,
    clock: Clock,
    permits: Permits,
    executions: Arc<AtomicU32>,
    policy: Policy,
    wait: Option<Duration>,
}

impl World {
    fn new() -> Self {
        Self::with_waiters(100)
    }

    fn with_waiters(max_waiters_per_key: usize) -> Self {
        Self::at(Clock::following_tokio(START), max_waiters_per_key)
    }

    fn at(clock: Clock, max_waiters_per_key: usize) -> Self {
        let settings = Settings {
            durability: Durability::Memory,
            timeout: Duration::from_secs(5),
            clock: clock.clone(),
            sweep: Sweep::default(),
        };
        let ledger = Arc::new(Embedded::with_latency(&settings, STEP));
        let limits = Limits { max_waiters_per_key, replay_cache: 1 << 20 };
        Self {
            arbiter: Arbiter::new(Arc::clone(&ledger) as _, limits, clock.clone()),
            ledger,
            clock,
            permits: Permits::new(1000, 1000),
            executions: Arc::default(),
            wait: Some(WAIT),
            policy: Policy {
                takeover: Takeover::Never,
                retention: Retention {
                    completed: Duration::from_hours(1),
                    unknown: Some(Duration::from_hours(1)),
                },
                responses: Arc::new(Responses::default()),
                settles: false,
            },
        }
    }

    fn executions(&self) -> u32 {
        self.executions.load(Ordering::SeqCst)
    }

    fn call(&self, key: &str, body: &'static str) -> Call {
        let name = HeaderName::from_static("idempotency-key");
        let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_str(key).unwrap())]);
        let rules = KeyRules { max_length: 255, format: KeyFormat::Any };
        let key = IdempotencyKey::read(&headers, &name, rules).unwrap().unwrap();
        let rule = ScopeRule { source: ScopeSource::None, anonymous: false };
        let scope = Scope::read(&headers, &rule).unwrap();
        let subject = Subject {
            method: Method::POST,
            authority: "".into(),
            path: "/v1/charges".into(),
            query: None,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
            secret: None,
        };
        let recipe = Arc::new(Recipe {
            version: Recipe::VERSION,
            body: BodyMode::Raw,
            headers: vec![],
            authority: true,
        });
        Call {
            key: KeyId::new(None, "charges", &scope, &key),
            fingerprint: subject.fingerprint(&recipe),
            subject: Arc::new(subject),
            origin: Origin {
                route: "charges".into(),
                gateway: "g".into(),
                request_id: "r".into(),
                trace: None,
            },
            policy: Arc::new(self.policy.clone()),
            wait_until: self.wait.map(|wait| Instant::now() + wait),
            reserved: Budget::new(0).reserve(0).unwrap(),
            permit: self.permits.take(Some(scope)).unwrap(),
            idempotency_key: key,
            key_naming: KeyNaming::Plain,
            metrics: RouteMetrics::new("charges"),
            trace: Trace::default(),
        }
    }

    /// A request that reaches the upstream, works there and ends as `ends` says.
    async fn request_ending(
        &self,
        body: &'static str,
        ends: impl FnOnce(u32) -> Execution<u32> + Send + 'static,
    ) -> Verdict<u32> {
        let executions = Arc::clone(&self.executions);
        let execute = move |attempt: Attempt| async move {
            if attempt.gate.open().is_err() {
                return Execution::Lapsed;
            }
            let number = executions.fetch_add(1, Ordering::SeqCst) + 1;
            sleep(WORK).await;
            ends(number)
        };
        self.arbiter.judge(self.call("k", body), execute).await
    }

    async fn request(&self, body: &'static str) -> Verdict<u32> {
        self.request_ending(body, |number| answered(number, 201)).await
    }
}

/// An arbiter that knows nothing but what the ledger of `world` does.
fn fresh_process(world: &World) -> Arbiter {
    let limits = Limits { max_waiters_per_key: 100, replay_cache: 1 << 20 };
    Arbiter::new(Arc::clone(&world.ledger) as _, limits, world.clock.clone())
}

/// The answer of execution `number`, in its body.
fn answered(number: u32, status: u16) -> Execution<u32> {
    let status = StatusCode::from_u16(status).unwrap();
    let disposition = Responses::default().disposition(status, false, 1);
    let body = StoredBody::Kept(Bytes::from(number.to_string()));
    let stored = StoredResponse { status, headers: HeaderMap::new(), body };
    Execution::Answered { stored, disposition, live: number }
}

/// The number of the execution whose answer a request got.
#[track_caller]
fn answer_of(verdict: &Verdict<u32>) -> u32 {
    let stored = match verdict {
        Verdict::Executed { live, .. } | Verdict::Passed { live, .. } => return *live,
        Verdict::Replay { record, .. } => &record.response,
        Verdict::Shared { response } => response,
        Verdict::Refused(refusal) => panic!("refused: {refusal:?}"),
    };
    let StoredBody::Kept(body) = &stored.body else { panic!("tombstone") };
    std::str::from_utf8(body).unwrap().parse().unwrap()
}

#[track_caller]
fn refusal_of(verdict: &Verdict<u32>) -> Refusal {
    match verdict {
        Verdict::Refused(refusal) => *refusal,
        Verdict::Executed { .. }
        | Verdict::Passed { .. }
        | Verdict::Shared { .. }
        | Verdict::Replay { .. } => panic!("not refused: {verdict:?}"),
    }
}
