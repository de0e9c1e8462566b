//! Spans as a real receiver gets them.

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use rustix::process::Signal;

use crate::support::{
    Client, Collector, Config, Gateway, Home, Refusing, Upstream, attribute, get, post, soon,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {spans:?}");
    found[0]
}

#[tokio::test]
async fn an_executed_request_is_a_span_with_its_steps_in_the_trace_of_its_caller() {
    let (collector, upstream) = (Collector::start().await, Upstream::start());
    let config = Config::to(upstream.address).top(&collector.line());
    let (gateway, _home) = Gateway::start(&config).await;
    let request = post("k")
        .header("traceparent", format!("00-{TRACE}-{CALLER}-01"))
        .header("tracestate", "congo=t61rcWkgMzE")
        .header("X-Request-Id", "request-1");
    assert_eq!(gateway.ask(&request).await.status, 201);

    let spans = collector.spans(4).await;

    let request = named(&spans, "POST charges");
    assert_eq!(hex(&request.parent_span_id), CALLER);
    assert_eq!(request.trace_state, "congo=t61rcWkgMzE");
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.response.status_code", "201"),
        ("oncegate.route", "charges"),
        ("oncegate.outcome", "executed"),
        ("oncegate.attempt", "1"),
        ("oncegate.idempotency_key", "k"),
        ("oncegate.request_id", "request-1"),
    ] {
        assert_eq!(attribute(request, name).as_deref(), Some(value), "{name}");
    }
    let token = attribute(request, "oncegate.fencing_token").unwrap();
    let mut ends = request.start_time_unix_nano;
    for step in ["begin", "upstream", "commit"] {
        let step = named(&spans, step);
        assert_eq!(step.parent_span_id, request.span_id, "{}", step.name);
        assert_eq!(attribute(step, "oncegate.attempt").as_deref(), Some("1"), "{}", step.name);
        assert_eq!(attribute(step, "oncegate.fencing_token").as_ref(), Some(&token));
        assert!(step.start_time_unix_nano >= ends, "{} begins early", step.name);
        ends = step.end_time_unix_nano;
    }
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE && span.links.is_empty()));
    assert_eq!(attribute(named(&spans, "upstream"), "oncegate.upstream").unwrap(), "payments");
    // The upstream continues below the call of it.
    let forwarded = &upstream.all()[0];
    let below = format!("00-{TRACE}-{}-01", hex(&named(&spans, "upstream").span_id));
    assert_eq!(forwarded.header("traceparent"), Some(&*below));
    assert_eq!(forwarded.header("tracestate"), Some("congo=t61rcWkgMzE"));
    assert_eq!(collector.resource("service.name").as_deref(), Some("oncegate"));
    assert!(collector.resource("service.instance.id").unwrap().starts_with("tested-"));
}

#[tokio::test]
async fn a_replay_names_the_trace_that_executed_also_after_a_restart() {
    let (collector, upstream) = (Collector::start().await, Upstream::start());
    let config = Config::to(upstream.address).durable().top(&collector.line());
    let home = Home::new();
    let gateway = home.start(&config).await;
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
    assert!(gateway.ask(&post("k")).await.is_replay());
    collector.spans(5).await;
    gateway.kill();
    let gateway = home.start(&config).await;
    assert!(gateway.ask(&post("k")).await.is_replay());

    // The last one asks the ledger, which the one before did not need.
    let spans = collector.spans(7).await;

    let outcome = |span: &&Span, outcome: &str| {
        attribute(span, "oncegate.outcome").as_deref() == Some(outcome)
    };
    let executed = spans.iter().find(|span| outcome(span, "executed")).unwrap();
    let replays: Vec<_> = spans.iter().filter(|span| outcome(span, "replayed")).collect();
    assert_eq!(replays.len(), 2, "{spans:?}");
    for replay in replays {
        assert_ne!(replay.trace_id, executed.trace_id);
        assert_eq!(replay.links.len(), 1, "{replay:?}");
        assert_eq!(replay.links[0].trace_id, executed.trace_id);
        assert_eq!(replay.links[0].span_id, executed.span_id);
    }
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_request_that_waits_for_another_has_a_span_of_its_wait() {
    let (collector, upstream) = (Collector::start().await, Upstream::holding());
    let config = Config::to(upstream.address).top(&collector.line());
    let (gateway, _home) = Gateway::start(&config).await;
    let mut first = Client::connect(gateway.address).await;
    first.send(&post("k")).await;
    upstream.received(1).await;
    let mut second = Client::connect(gateway.address).await;
    second.send(&post("k")).await;
    gateway.waiters(1).await;
    upstream.go();
    assert_eq!(first.answer().await.status, 201);
    assert!(second.answer().await.is_replay());

    let spans = collector.spans(6).await;

    let wait = named(&spans, "wait");
    let joined = spans.iter().find(|span| span.span_id == wait.parent_span_id).unwrap();
    assert_eq!(attribute(joined, "oncegate.outcome").as_deref(), Some("joined"));
    let executed = spans.iter().find(|span| span.name == "commit").unwrap();
    assert_eq!(joined.links[0].trace_id, executed.trace_id);
}

#[tokio::test]
async fn a_trace_that_its_caller_does_not_record_is_passed_on_and_not_recorded() {
    let (collector, upstream) = (Collector::start().await, Upstream::start());
    let config = Config::to(upstream.address).top(&collector.line());
    let (gateway, _home) = Gateway::start(&config).await;
    let silent = post("silent").header("traceparent", format!("00-{TRACE}-{CALLER}-00"));
    gateway.ask(&silent).await;
    gateway.ask(&get("/elsewhere")).await;

    // What comes later is there, so what is not there will not come.
    let spans = collector.spans(2).await;

    assert_eq!(spans.len(), 2, "{spans:?}");
    assert!(spans.iter().all(|span| hex(&span.trace_id) != TRACE));
    let forwarded = upstream.all()[0].header("traceparent").unwrap().to_owned();
    assert!(forwarded.starts_with(&format!("00-{TRACE}-")) && forwarded.ends_with("-00"));
    assert!(!forwarded.contains(CALLER), "{forwarded}");
}

#[tokio::test]
async fn without_a_collector_the_fields_pass_as_they_came() {
    let upstream = Upstream::start();
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let parent = format!("00-{TRACE}-{CALLER}-01");
    gateway.ask(&post("k").header("traceparent", &parent).header("tracestate", "a=1")).await;
    let forwarded = &upstream.all()[0];
    assert_eq!(forwarded.header("traceparent"), Some(&*parent));
    assert_eq!(forwarded.header("tracestate"), Some("a=1"));
}

#[tokio::test]
async fn a_collector_that_is_down_costs_no_request_anything_and_what_is_lost_is_counted() {
    let (nobody, upstream) = (Refusing::new(), Upstream::start());
    let line = format!("tracing: {{ otlp_endpoint: 'http://{}' }}", nobody.address);
    let config = Config::to(upstream.address).top(&line);
    let (gateway, _home) = Gateway::start(&config).await;
    for number in 0..20 {
        assert_eq!(gateway.ask(&post(&format!("k{number}"))).await.status, 201);
    }
    let lost = [("reason", "collector")];
    gateway.metric_is("oncegate_spans_dropped_total", &lost, 80.0).await;
    let told = gateway.logged("the collector takes no spans; they are dropped").await;
    assert_eq!(told["level"], "WARN");
    let told = gateway.events().into_iter().filter(|event| event["message"] == told["message"]);
    assert_eq!(told.count(), 1, "told once");
}

#[tokio::test]
async fn a_collector_that_never_answers_delays_neither_requests_nor_for_long_the_end() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = Upstream::start();
    let address = silent.local_addr().unwrap();
    let line = format!("tracing: {{ otlp_endpoint: 'http://{address}' }}");
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address).top(&line)).await;
    // More than the queue takes while the first batch is awaited.
    let mut client = Client::connect(gateway.address).await;
    let mut lost = 0.0;
    for number in 0..20_000 {
        client.send(&get("/elsewhere")).await;
        assert_eq!(client.answer().await.status, 201);
        if number % 500 == 0 {
            let full = [("reason", "queue_full")];
            lost = gateway.metric("oncegate_spans_dropped_total", &full).await;
        }
        if lost > 0.0 {
            break;
        }
    }
    assert!(lost > 0.0, "the queue has a bound");
    gateway.signal(Signal::TERM);
    let stopping = tokio::time::Instant::now();
    assert_eq!(gateway.exit_code().await, 0);
    assert!(stopping.elapsed() < Duration::from_secs(5), "{:?}", stopping.elapsed());
}

#[tokio::test]
async fn the_last_spans_are_sent_before_the_end() {
    let (collector, upstream) = (Collector::start().await, Upstream::holding());
    let config = Config::to(upstream.address).top(&collector.line());
    let (gateway, _home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    gateway.signal(Signal::TERM);
    gateway.logged("gateway stops: finishing what is in flight").await;
    upstream.go();
    assert_eq!(client.answer().await.status, 201);
    assert_eq!(gateway.exit_code().await, 0);
    // It is over: whatever is not there now never comes.
    let spans = soon("the spans", collector.spans(4)).await;
    assert_eq!(spans.len(), 4);
}

#[tokio::test]
async fn no_scope_value_body_query_or_hashed_key_is_ever_in_a_span() {
    let (collector, upstream) = (Collector::start().await, Upstream::start());
    let config = Config::to(upstream.address).top("log: { keys: hashed }").top(&collector.line());
    let (gateway, _home) = Gateway::start(&config).await;
    let request = || {
        post("order-number-7")
            .caller("scope-value")
            .header("Authorization", "Bearer credential")
            .to("/v1/charges?query-text")
            .body("body-text")
    };
    gateway.ask(&request()).await;
    gateway.ask(&request()).await;
    gateway.ask(&request().body("body-text 2")).await;
    gateway.ask(&request().to("/elsewhere?query-text").method("GET")).await;

    let spans = collector.spans(8).await;

    let hashed = spans.iter().find_map(|span| attribute(span, "oncegate.idempotency_key"));
    assert_eq!(hashed.unwrap().len(), 64, "a key id");
    for secret in ["order-number", "scope-value", "credential", "query-text", "body-text"] {
        assert!(!collector.has_seen(secret), "{secret}");
    }
}
