//! What the layer and the arbiter cost, around a service that answers at once.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use divan::Bencher;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt, Full};
use metrics_exporter_prometheus::PrometheusBuilder;
use oncegate::{
    arbiter::{Arbiter, Attempt, Budget, Call, Disposition, Execution, Limits, Permits, Verdict},
    domain::{
        Clock, IdempotencyKey, KeyId, Origin, Scope, ScopeRule, ScopeSource, StoredBody,
        StoredResponse, Subject,
    },
    gateway::{
        IdempotencyLayer,
        idempotency::{Settings, Shared},
    },
    ledger::embedded::{self, Durability, Embedded, Sweep},
    telemetry::{
        KeyNaming,
        trace::{Trace, Tracer},
    },
};
use tokio::runtime::Runtime;
use tower::{Layer, Service, ServiceExt, service_fn, util::ServiceFn};

/// The program's allocator, since a good part of these figures is its work.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY: &[u8] = br#"{"amount":1250,"currency":"eur","to":"acct_1MmlLrLkdIwHu7ix"}"#;
const ANSWER: &[u8] = br#"{"id":"ch_1"}"#;

type Answered = Ready<Result<Response<Full<Bytes>>, Infallible>>;
type Upstream = fn(Request<Full<Bytes>>) -> Answered;

fn main() {
    // As in the program, where each request is counted.
    PrometheusBuilder::new().install_recorder().unwrap();
    divan::main();
}

#[divan::bench]
fn judge_a_cached_key(bencher: Bencher<'_, '_>) {
    let (runtime, arbiter, permits) = (runtime(), shared().arbiter, Permits::new(10, 10));
    let parts = request("again").into_parts().0;
    let settings = settings();
    let executed = runtime.block_on(arbiter.judge(call(&parts, &settings, &permits), execute));
    assert!(matches!(executed, Verdict::Executed { .. }), "{executed:?}");
    bencher.with_inputs(|| call(&parts, &settings, &permits)).bench_local_values(|call| {
        let verdict = runtime.block_on(arbiter.judge(call, execute));
        assert!(matches!(verdict, Verdict::Replay { .. }), "{verdict:?}");
    });
}

#[divan::bench]
fn a_request_that_passes_through(bencher: Bencher<'_, '_>) {
    requests(bencher, Settings { methods: Vec::new(), ..settings() }, |_| "unused".into());
}

#[divan::bench]
fn a_replay(bencher: Bencher<'_, '_>) {
    requests(bencher, settings(), |_| "again".into());
}

#[divan::bench]
fn a_fresh_key(bencher: Bencher<'_, '_>) {
    requests(bencher, settings(), |number| number.to_string());
}

/// Whole requests through the layer, one after the other, with the ledger in memory.
fn requests(bencher: Bencher<'_, '_>, settings: Settings, key: fn(u64) -> String) {
    let runtime = runtime();
    let service: ServiceFn<Upstream> = service_fn(upstream);
    let mut layered = IdempotencyLayer::new(shared(), settings).layer(service);
    let mut number = 0;
    let next = || {
        number += 1;
        request(&key(number))
    };
    bencher.with_inputs(next).bench_local_values(|request| {
        runtime.block_on(async {
            let response = layered.ready().await.unwrap().call(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            response.into_body().collect().await.unwrap().to_bytes()
        })
    });
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn shared() -> Shared {
    let ledger = Embedded::open(&embedded::Settings {
        durability: Durability::Memory,
        timeout: Duration::from_secs(5),
        clock: Clock::system(),
        sweep: Sweep::default(),
    });
    let limits = Limits { max_waiters_per_key: 100, replay_cache: 64 << 20 };
    Shared {
        arbiter: Arbiter::new(Arc::new(ledger.unwrap()), limits, Clock::system()),
        permits: Permits::new(10_000, 1000),
        budget: Budget::new(512 << 20),
        gateway: "gateway-1-5f3c".into(),
        secret: None,
        key_naming: KeyNaming::Plain,
        tracer: Tracer::default(),
    }
}

fn settings() -> Settings {
    let api_key = HeaderName::from_static("x-api-key");
    let scope = ScopeRule { source: ScopeSource::Headers(vec![api_key]), anonymous: false };
    Settings::new("charges", scope)
}

fn upstream(_: Request<Full<Bytes>>) -> Answered {
    ready(Ok(Response::new(Full::from(ANSWER))))
}

async fn execute(attempt: Attempt) -> Execution<()> {
    attempt.gate.open().unwrap();
    let stored = StoredResponse {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        body: StoredBody::Kept(Bytes::from_static(ANSWER)),
    };
    Execution::Answered { stored, disposition: Disposition::Store, live: () }
}

fn request(key: &str) -> Request<Full<Bytes>> {
    Request::post("/v1/charges")
        .header("host", "api.example.com")
        .header("content-type", "application/json")
        .header("x-api-key", "sk_test_4eC39HqLyjWDarjtT1zdp7dc")
        .header("idempotency-key", key)
        .body(Full::from(BODY))
        .unwrap()
}

/// What the layer makes of such a request.
fn call(parts: &Parts, settings: &Settings, permits: &Permits) -> Call {
    let scope = Scope::read(&parts.headers, &settings.scope).unwrap();
    let key = IdempotencyKey::read(&parts.headers, &settings.header, settings.key);
    let key = key.unwrap().unwrap();
    let subject = Subject {
        method: parts.method.clone(),
        authority: "api.example.com".into(),
        path: parts.uri.path().into(),
        query: None,
        headers: parts.headers.clone(),
        body: Bytes::from_static(BODY),
        secret: None,
    };
    Call {
        key: KeyId::new(None, &settings.namespace, &scope, &key),
        fingerprint: subject.fingerprint(&settings.recipe),
        subject: Arc::new(subject),
        origin: Origin {
            route: Arc::clone(&settings.route),
            gateway: "gateway-1-5f3c".into(),
            request_id: "0192e4a6-5bd4-7c3e-8f9a-1b2c3d4e5f60".into(),
            trace: None,
        },
        policy: Arc::clone(&settings.policy),
        wait_until: settings.wait.map(|wait| tokio::time::Instant::now() + wait),
        reserved: Budget::new(0).reserve(0).unwrap(),
        permit: permits.take(Some(scope)).unwrap(),
        idempotency_key: key,
        key_naming: KeyNaming::Plain,
        metrics: settings.metrics.clone(),
        trace: Trace::default(),
    }
}
