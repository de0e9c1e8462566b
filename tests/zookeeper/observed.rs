//! What operators see of locks and sessions: the runbook's metrics and events.

use std::time::Duration;

use serde_json::Value;

use crate::{
    shared::{Client, Collector, Gateway, Home, Upstream, attribute, post, soon},
    support::{Deployment, Link, Peer},
};

/// The fields that every event of a lock carries.
const FIELDS: [&str; 9] = [
    "idempotency_key",
    "znode_path",
    "session_id",
    "event",
    "route",
    "request_id",
    "attempt",
    "fencing_token",
    "gateway",
];

/// How long a holder takes, so that waiting for it is far above what the ledger takes.
const HELD: Duration = Duration::from_secs(1);

/// The first event of this name.
async fn event(gateway: &Gateway, name: &str) -> Value {
    gateway.logged_where(name, |event| event["event"] == name).await
}

fn is_complete(event: &Value, deployment: &Deployment) {
    for field in FIELDS {
        assert!(!event[field].is_null(), "{field} is missing in {event}");
    }
    assert_eq!((&event["level"], &event["route"]), (&"INFO".into(), &"charges".into()));
    assert_eq!(event["idempotency_key"], "k");
    let path = event["znode_path"].as_str().unwrap();
    assert!(path.starts_with(&deployment.path("k")), "{event}");
    let session = event["session_id"].as_str().unwrap();
    let digits = session.strip_prefix("0x").expect("as the servers print it");
    assert!(u64::from_str_radix(digits, 16).is_ok(), "{event}");
}

#[tokio::test]
async fn the_life_of_a_lock_is_told_in_events_with_the_runbooks_fields() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let (holder, waiter) = (deployment.gateway().await, deployment.gateway().await);
    let mut first = Client::connect(holder.address).await;
    first.send(&post("k")).await;
    upstream.received(1).await;
    let mut second = Client::connect(waiter.address).await;
    second.send(&post("k")).await;
    let mut peer = Peer::of(&deployment.ensemble);
    let both = async { while deployment.locks(&mut peer).await.len() < 2 {} };
    soon("the waiter's node", both).await;
    upstream.go();
    assert_eq!(first.answer().await.status, 201);
    assert!(second.answer().await.is_replay());

    let token = upstream.last().header("idempotency-fencing-token").unwrap().to_owned();
    for name in ["created", "acquired", "released"] {
        let event = event(&holder, name).await;
        is_complete(&event, &deployment);
        assert_eq!(event["attempt"], 1, "{event}");
    }
    for name in ["acquired", "released"] {
        let event = event(&holder, name).await;
        assert_eq!(event["fencing_token"].to_string().trim_matches('"'), token, "{event}");
    }
    // One that waited for an answer has a lock node, too, but never an attempt.
    let waits = event(&waiter, "created").await;
    for name in ["created", "watch_fired", "released"] {
        let event = event(&waiter, name).await;
        for field in ["idempotency_key", "znode_path", "session_id", "route", "gateway"] {
            assert_eq!(event[field], waits[field], "{field} of {event}");
        }
        assert_eq!((event.get("attempt"), event.get("fencing_token")), (None, None), "{event}");
    }
    for gateway in [&holder, &waiter] {
        let is_access = |event: &&Value| event["message"] == "request ended";
        gateway.logged("request ended").await;
        assert_eq!(gateway.events().iter().filter(is_access).count(), 1);
    }
}

#[tokio::test]
async fn the_end_of_a_session_is_told_and_counted() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await;
    let link = Link::to(&deployment.ensemble).await;
    let gateway = deployment.gateway_via(&link).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    link.stall();
    assert_eq!(client.answer().await.status, 503);

    let event = event(&gateway, "session_expired").await;
    is_complete(&event, &deployment);
    gateway.metric_is("zk_session_expired_total", &[("reason", "lease")], 1.0).await;
    let lost = [("session", "0"), ("state", "lost")];
    gateway.metric_is("zk_session_state", &lost, 1.0).await;
    link.flow();
    let connected = [("session", "0"), ("state", "connected")];
    gateway.metric_is("zk_session_state", &connected, 1.0).await;
}

#[tokio::test]
async fn locks_waiters_and_servers_are_counted_as_the_runbook_names_them() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let (holder, waiter) = (deployment.gateway().await, deployment.gateway().await);
    let route = [("route", "charges")];
    let mut first = Client::connect(holder.address).await;
    first.send(&post("k")).await;
    upstream.received(1).await;
    holder.metric_is("zk_ephemeral_nodes_total", &route, 1.0).await;
    let mut second = Client::connect(waiter.address).await;
    second.send(&post("k")).await;
    let mut peer = Peer::of(&deployment.ensemble);
    let both = async { while deployment.locks(&mut peer).await.len() < 2 {} };
    soon("the waiter's node", both).await;
    waiter.metric_is("oncegate_waiters", &route, 1.0).await;
    tokio::time::sleep(HELD).await;
    upstream.go();
    assert_eq!(first.answer().await.status, 201);
    assert!(second.answer().await.is_replay());

    // Whoever waits for a live holder does not make the ledger look slow.
    waiter.metric_is("oncegate_waiters", &route, 0.0).await;
    let seconds = "oncegate_ledger_duration_seconds_sum";
    assert!(waiter.metric(seconds, &[("phase", "wait")]).await >= HELD.as_secs_f64());
    assert!(waiter.metric(seconds, &[("phase", "begin")]).await < HELD.as_secs_f64());
    let prefix = [("prefix", &*deployment.root)];
    waiter.metric_is("zk_watch_notifications_total", &prefix, 1.0).await;
    holder.metric_is("zk_ephemeral_nodes_total", &route, 0.0).await;
    holder.metric_is("zk_lock_releases_total", &[("waiters", "no")], 1.0).await;
    // One waiter was woken by one release: the fan-out is 1.
    waiter.metric_is("zk_lock_releases_total", &[("waiters", "yes")], 1.0).await;
    for size in ["zk_ensemble_size", "zk_quorum_size"] {
        holder.metric_is(size, &[], 3.0).await;
    }
    assert!(holder.metric("zk_lease_remaining_seconds", &[("session", "0")]).await > 0.0);
    for operation in ["multi_begin", "multi_commit", "heartbeat", "getData"] {
        let labels = [("operation", operation)];
        let count = holder.metric("zk_operation_latency_ms_count", &labels).await;
        assert!(count >= 1.0, "{operation}: {count}");
    }
}

#[tokio::test]
async fn a_replay_of_another_gateway_names_the_trace_that_executed() {
    let (collector, upstream) = (Collector::start().await, Upstream::start());
    let deployment = Deployment::to(upstream.address).await;
    let text = format!("{}\n{}", deployment.plan().text(), collector.line());
    let (one, other) = (Home::new(), Home::new());
    let (first, second) = (one.start_with(&text).await, other.start_with(&text).await);
    assert_eq!(first.ask(&post("k")).await.status, 201);
    assert!(second.ask(&post("k")).await.is_replay());

    let spans = collector.spans(6).await;

    let ended = |outcome: &str| {
        let is_meant = |span: &&_| attribute(span, "oncegate.outcome").as_deref() == Some(outcome);
        spans.iter().find(is_meant).unwrap()
    };
    let (executed, replayed) = (ended("executed"), ended("replayed"));
    assert_eq!(replayed.links.len(), 1);
    assert_eq!(replayed.links[0].trace_id, executed.trace_id);
    assert_eq!(replayed.links[0].span_id, executed.span_id);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn what_is_stored_is_told_by_the_gateway_that_sweeps_and_by_no_other() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let link = Link::to(&deployment.ensemble).await;
    let sweeps = deployment.gateway_via(&link).await;
    let other = deployment.gateway().await;
    assert_eq!(other.ask(&post("k")).await.status, 201);
    let (name, completed) = ("oncegate_keys_stored", [("state", "completed")]);
    sweeps.metric_is(name, &completed, 1.0).await;
    assert!(other.metric(name, &completed).await < 1.0);

    link.stall();

    sweeps.metric_is(name, &completed, 0.0).await;
    other.metric_is(name, &completed, 1.0).await;
}
