//! What a file means: defaults, the words of each choice, references to the environment.

use std::time::Duration;

use http::{HeaderName, Method, StatusCode};
use oncegate::{
    config::{
        Balance, Disposition, ForwardKey, InProgress, LedgerKind, LogFormat, LogKeys,
        OnSessionLoss, Storage, UnknownOutcome,
    },
    domain::{BodyMode, KeyFormat, Retention, ScopeSource, Secret},
};

use crate::support::{SMALLEST, read, read_in, rules_of, with_rules};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_hours(24);

#[test]
fn what_is_not_written_has_the_default_of_the_documentation() {
    let config = read(SMALLEST);
    assert_eq!(config.gateway_id, "gateway");
    assert_eq!(config.listen.header_timeout, 10 * SECOND);
    assert_eq!(config.listen.body_timeout, 30 * SECOND);
    assert_eq!(config.listen.max_connections, 10_000);
    assert_eq!(config.listen.max_header_size, 64 << 10);
    assert!(config.listen.trusted_proxies.is_empty());
    assert_eq!(config.ledger.timeout, 5 * SECOND);
    let path = "ledger.redb".into();
    assert_eq!(config.ledger.kind, LedgerKind::Embedded(Storage::Fsync { path }));
    assert_eq!(config.limits.max_in_flight, 10_000);
    assert_eq!(config.limits.max_in_flight_per_scope, 1_000);
    assert_eq!(config.limits.max_waiters_per_key, 100);
    assert_eq!(config.limits.buffered_bodies, 512 << 20);
    assert_eq!(config.limits.replay_cache, 64 << 20);
    assert_eq!(config.key_secret, None);
    assert_eq!(config.drain_delay, Duration::ZERO);
    assert_eq!(config.drain_timeout, 40 * SECOND);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.log.level, tracing::Level::INFO);
    assert_eq!(config.log.keys, LogKeys::Plain);

    let upstream = config.upstream_of(&config.routes[0]);
    assert_eq!(upstream.name, "payments");
    assert_eq!(upstream.endpoints[0].authority, "127.0.0.1:9000");
    assert_eq!(upstream.balance, Balance::LeastRequests);
    assert_eq!(upstream.connect_timeout, 2 * SECOND);
    assert_eq!(upstream.request_timeout, 30 * SECOND);
    assert_eq!(upstream.idle_timeout, SECOND);
    assert_eq!(upstream.stream_timeout, 60 * SECOND);
}

#[test]
fn idempotency_has_the_defaults_of_the_documentation() {
    let rules = rules_of(read(SMALLEST));
    assert_eq!(rules.header, "idempotency-key");
    assert!(rules.required);
    let scope = HeaderName::from_static("x-api-key");
    assert_eq!(rules.scope.source, ScopeSource::Headers(vec![scope]));
    assert!(!rules.scope.anonymous);
    assert_eq!(rules.namespace, "charges");
    assert_eq!((rules.key.max_length, rules.key.format), (255, KeyFormat::Any));
    assert_eq!((rules.fingerprint.body, rules.fingerprint.headers), (BodyMode::Raw, vec![]));
    assert_eq!(rules.in_progress, InProgress::Wait(10 * SECOND));
    // R5: what a lost answer means is the route's choice, and is not "run it again".
    assert_eq!(rules.unknown_outcome, UnknownOutcome::Reject);
    assert_eq!(rules.on_session_loss, OnSessionLoss::Abort);
    // R3: for how long answers are kept is a matter of its own, apart from every time limit.
    let retention = Retention { completed: DAY, unknown: Some(7 * DAY) };
    assert_eq!(rules.retention, retention);
    assert_eq!(rules.max_request_body, 1 << 20);
    assert_eq!(rules.max_stored_body, 64 << 10);
    assert_eq!(rules.responses.disposition(StatusCode::OK), None);
    assert_eq!(rules.forward_key, ForwardKey::Pass);
    assert_eq!(rules.replay_header, "idempotent-replayed");
    assert!(rules.drop_headers.is_empty());
}

#[test]
fn each_word_of_each_choice_means_what_it_says() {
    let unknown = |words| with_rules(&format!("unknown_outcome: {words}")).unknown_outcome;
    assert_eq!(unknown("reject"), UnknownOutcome::Reject);
    assert_eq!(unknown("retry"), UnknownOutcome::Retry { attempts: 3 });
    assert_eq!(unknown("{ retry: {} }"), UnknownOutcome::Retry { attempts: 3 });
    assert_eq!(unknown("{ retry: { attempts: 5 } }"), UnknownOutcome::Retry { attempts: 5 });

    let in_progress = |words| with_rules(&format!("in_progress: {words}")).in_progress;
    assert_eq!(in_progress("reject"), InProgress::Reject);
    assert_eq!(in_progress("{ wait: 250ms }"), InProgress::Wait(SECOND / 4));

    let body = |words| with_rules(&format!("fingerprint: {{ {words} }}")).fingerprint.body;
    assert_eq!(body("body: raw"), BodyMode::Raw);
    assert_eq!(body("body: form"), BodyMode::Form);
    assert_eq!(body("body: multipart"), BodyMode::Multipart);
    assert_eq!(body("body: none"), BodyMode::None);
    assert_eq!(body("body: json"), BodyMode::Json { ignore: vec![] });
    let ignore = vec!["/a".to_owned(), "/b~0c".to_owned()];
    assert_eq!(body("body: json, ignore: [/a, /b~0c]"), BodyMode::Json { ignore });

    let never = with_rules("retention: { unknown: never }").retention;
    assert_eq!(never, Retention { completed: DAY, unknown: None });
    assert_eq!(with_rules("forward_key: strip").forward_key, ForwardKey::Strip);
    assert_eq!(with_rules("key: { format: uuid }").key.format, KeyFormat::Uuid);
    assert!(with_rules("scope_missing: anonymous").scope.anonymous);
    assert!(!with_rules("required: false").required);
}

#[test]
fn each_word_outside_of_routes_means_what_it_says() {
    let memory = read(&SMALLEST.replace("path: ledger.redb", "durability: memory"));
    assert_eq!(memory.ledger.kind, LedgerKind::Embedded(Storage::Memory));
    let robin = SMALLEST.replace("{ endpoints", "{ balance: round_robin, endpoints");
    assert_eq!(read(&robin).upstreams[0].balance, Balance::RoundRobin);
    let log = |words: &str| read(&format!("{SMALLEST}log: {{ {words} }}\n")).log;
    assert_eq!(log("format: text").format, LogFormat::Text);
    assert_eq!(log("keys: hashed").keys, LogKeys::Hashed);
    for level in ["error", "warn", "info", "debug", "trace"] {
        assert_eq!(log(&format!("level: {level}")).level.as_str().to_lowercase(), level);
    }
}

#[test]
fn an_exact_status_beats_its_class() {
    let rules = with_rules("responses: { 404: release, 4xx: unknown, 5xx: store }");
    let says = |status| rules.responses.disposition(StatusCode::from_u16(status).unwrap());
    assert_eq!(says(404), Some(Disposition::Release));
    assert_eq!(says(400), Some(Disposition::Unknown));
    assert_eq!(says(503), Some(Disposition::Store));
    assert_eq!(says(302), None);
}

#[test]
fn only_the_methods_of_the_route_are_keyed_or_else_post_and_patch() {
    let route = &read(SMALLEST).routes[0];
    assert!(route.is_keyed(&Method::POST) && route.is_keyed(&Method::PATCH));
    assert!(!route.is_keyed(&Method::GET) && !route.is_keyed(&Method::PUT));

    let put = SMALLEST.replace("/v1/charges }", "/v1/charges, methods: [PUT] }");
    let route = &read(&put).routes[0];
    assert!(route.is_keyed(&Method::PUT) && !route.is_keyed(&Method::POST));
}

#[test]
fn prefixes_cover_whole_segments() {
    let matching = |prefix: &str, more: &str| {
        let fields = format!("{{ path_prefix: {prefix}{more} }}");
        read(&SMALLEST.replace("{ path_prefix: /v1/charges }", &fields)).routes.remove(0).matching
    };
    let charges = matching("/v1/charges", "");
    assert!(charges.covers(&matching("/v1/charges/x", "")));
    assert!(!charges.covers(&matching("/v1/charges-old", "")));
    assert!(!charges.overlaps(&matching("/v1/charges-old", "")));
    assert!(!charges.covers(&matching("/v1", "")));
    assert!(charges.overlaps(&matching("/v1", "")));
    assert!(matching("/", "").covers(&charges));
    assert_eq!(matching("/v1/charges/", ""), charges, "a slash at the end says nothing more");

    let post = matching("/v1/charges", ", methods: [POST]");
    assert!(charges.covers(&post) && !post.covers(&charges) && post.overlaps(&charges));
    assert!(!post.overlaps(&matching("/v1/charges", ", methods: [PUT]")));
    let host = matching("/v1/charges", ", host: A.Example");
    assert_eq!(host.host.as_deref(), Some("a.example"));
    assert!(charges.covers(&host) && !host.covers(&charges));
    assert!(!host.overlaps(&matching("/v1/charges", ", host: b.example")));
}

#[test]
fn endpoints_come_apart_into_host_and_port() {
    let endpoint = |url: &str| {
        let config = read(&SMALLEST.replace("http://127.0.0.1:9000", url));
        let endpoint = config.upstreams[0].endpoints[0].clone();
        (endpoint.host, endpoint.port, endpoint.authority)
    };
    let parts = |host: &str, port, authority: &str| (host.to_owned(), port, authority.to_owned());
    assert_eq!(endpoint("http://Pay.Example/"), parts("pay.example", 80, "pay.example:80"));
    assert_eq!(endpoint("HTTP://pay_1:9000"), parts("pay_1", 9000, "pay_1:9000"));
    assert_eq!(endpoint("http://[::1]:9000"), parts("::1", 9000, "[::1]:9000"));
    assert_eq!(endpoint("http://[::1]"), parts("::1", 80, "[::1]:80"));
}

#[test]
fn references_are_replaced_before_a_value_is_read_quoted_or_plain() {
    let text = SMALLEST
        .replace("'127.0.0.1:8080'", "\"127.0.0.1:${PORT}\", max_connections: '${MANY}'")
        .replace("[X-Api-Key]", "[X-Api-Key], max_stored_body: \"${SIZE}KiB\"")
        + "drain_timeout: ${DRAIN:-50s}\ngateway_id: ${NAME}-$a\n";
    let text = text.replace("-$a", "-a");
    let pairs = [("PORT", "8000"), ("MANY", "7"), ("SIZE", "2"), ("NAME", "gw")];
    let config = read_in(&text, &pairs);
    assert_eq!(config.listen.address.port(), 8000);
    assert_eq!(config.listen.max_connections, 7);
    assert_eq!(config.drain_timeout, 50 * SECOND);
    assert_eq!(config.gateway_id, "gw-a");
    assert_eq!(rules_of(config).max_stored_body, 2048);
}

#[test]
fn a_default_stands_in_for_what_is_unset_or_empty() {
    let text = format!("{SMALLEST}gateway_id: ${{NAME:-other}}\n");
    assert_eq!(read_in(&text, &[]).gateway_id, "other");
    assert_eq!(read_in(&text, &[("NAME", "")]).gateway_id, "other");
    assert_eq!(read_in(&text, &[("NAME", "mine")]).gateway_id, "mine");
}

#[test]
fn what_comes_from_the_environment_is_never_structure_and_never_a_reference() {
    let text = format!("{SMALLEST}key_secret: ${{SECRET}}\n");
    for value in ["a:{b},[c]#d-e", "${SECRET}", "&anchor-*alias"] {
        let config = read_in(&text, &[("SECRET", value)]);
        assert_eq!(config.key_secret.unwrap().expose(), value.as_bytes());
    }
}

#[test]
fn two_dollars_make_a_plain_reference() {
    let text = format!("{SMALLEST}key_secret: $${{SECRET}}$$$$${{}}$x\n");
    let config = read_in(&text, &[("SECRET", "not this")]);
    assert_eq!(config.key_secret.unwrap().expose(), b"${SECRET}$$$${}$x");
}

#[test]
fn debug_shows_no_secret() {
    let text = SMALLEST.replace("9090'", "9090', token: tell-nobody") + "key_secret: tell-nobody\n";
    let shown = format!("{:?}", read(&text));
    assert!(!shown.contains("tell-nobody"), "{shown}");
}

#[test]
fn line_ends_and_byte_order_marks_of_other_systems_change_nothing() {
    let windows = format!("\u{feff}{}", SMALLEST.replace('\n', "\r\n"));
    assert_eq!(read(&windows), read(SMALLEST));
}

#[test]
fn the_configuration_in_effect_reads_again_as_the_same_without_its_secrets() {
    let full =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/payments.yaml"));
    let memory = SMALLEST.replace("path: ledger.redb", "durability: memory");
    let secrets = format!(
        "{}key_secret: top-secret\n",
        SMALLEST.replace("9090'", "9090', token: very-secret")
    );
    let rules = SMALLEST.replace(
        "[X-Api-Key] }",
        "none, unknown_outcome: { retry: { attempts: 5 } }, in_progress: reject, forward_key: strip, \
         fingerprint: { body: form, headers: [X-A] }, retention: { completed: 90m, unknown: never }, \
         responses: { '404': release, 5xx: unknown, '409': store }, drop_headers: [X-B] }",
    );
    for text in [SMALLEST, &memory, &secrets, &rules, &full.unwrap()] {
        let mut config = read(text);

        let shown = config.to_masked_json().to_string();

        assert!(!shown.contains("-secret") && !shown.contains("null"), "{shown}");
        let hidden = || Some(Secret::new(*b"<hidden>"));
        config.key_secret = config.key_secret.and_then(|_| hidden());
        config.admin.token = config.admin.token.and_then(|_| hidden());
        assert_eq!(read(&shown), config, "{shown}");
    }
}
