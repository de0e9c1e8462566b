//! The configuration in effect as a file would say it, every default written out and no secret.

use std::time::Duration;

use http::{HeaderName, Method};
use serde_json::{Map, Value, json};

use super::{
    model::{
        Balance, Config, Disposition, ForwardKey, Idempotency, InProgress, LedgerKind, LogFormat,
        LogKeys, OnSessionLoss, Responses, Route, Storage, UnknownOutcome, Upstream,
    },
    units::Measure,
};
use crate::{
    domain::{BodyMode, KeyFormat, Retention, ScopeSource, Secret},
    ledger::zookeeper::TlsFiles,
};

/// Stands for each secret.
const HIDDEN: &str = "<hidden>";

// === impl Config ===

impl Config {
    /// As JSON with the fields of the file, which read again gives the same configuration, but
    /// for its secrets: each of them is masked.
    pub fn to_masked_json(&self) -> Value {
        let upstreams = self.upstreams.iter().map(|it| (it.name.clone(), upstream(it)));
        without_nulls(json!({
            "listen": {
                "address": self.listen.address.to_string(),
                "trusted_proxies": strings(&self.listen.trusted_proxies),
                "header_timeout": duration(self.listen.header_timeout),
                "body_timeout": duration(self.listen.body_timeout),
                "max_connections": self.listen.max_connections,
                "max_header_size": size(self.listen.max_header_size),
            },
            "admin": {
                "address": self.admin.address.to_string(),
                "token": hidden(self.admin.token.as_ref()),
            },
            "gateway_id": self.gateway_id,
            "ledger": {
                "kind": match &self.ledger.kind {
                    LedgerKind::Embedded(_) => "embedded",
                    LedgerKind::ZooKeeper(_) => "zookeeper",
                },
                "timeout": duration(self.ledger.timeout),
                "embedded": match &self.ledger.kind {
                    LedgerKind::Embedded(Storage::Fsync { path }) => {
                        json!({ "durability": "fsync", "path": path.display().to_string() })
                    }
                    LedgerKind::Embedded(Storage::Memory) => json!({ "durability": "memory" }),
                    LedgerKind::ZooKeeper(_) => Value::Null,
                },
                "zookeeper": match &self.ledger.kind {
                    LedgerKind::Embedded(_) => Value::Null,
                    LedgerKind::ZooKeeper(ensemble) => json!({
                        "servers": ensemble.servers,
                        "root": ensemble.root,
                        "session_timeout": duration(ensemble.session_timeout),
                        "tick_time": duration(ensemble.tick_time),
                        "sessions": ensemble.sessions,
                        "auth": schemes(&ensemble.auth),
                        "tls": ensemble.tls.as_ref().map(tls),
                    }),
                },
            },
            "limits": {
                "max_in_flight": self.limits.max_in_flight,
                "max_in_flight_per_scope": self.limits.max_in_flight_per_scope,
                "max_waiters_per_key": self.limits.max_waiters_per_key,
                "buffered_bodies": size(self.limits.buffered_bodies),
                "replay_cache": size(self.limits.replay_cache),
            },
            "key_secret": hidden(self.key_secret.as_ref()),
            "upstreams": upstreams.collect::<Map<_, _>>(),
            "routes": self.routes.iter().map(|it| self.route(it)).collect::<Vec<_>>(),
            "drain_delay": duration(self.drain_delay),
            "drain_timeout": duration(self.drain_timeout),
            "tracing": self.tracing.as_ref().map(|tracing| {
                json!({ "otlp_endpoint": tracing.otlp_endpoint.to_string() })
            }),
            "log": {
                "format": match self.log.format {
                    LogFormat::Json => "json",
                    LogFormat::Text => "text",
                },
                "level": self.log.level.to_string().to_lowercase(),
                "keys": match self.log.keys {
                    LogKeys::Plain => "plain",
                    LogKeys::Hashed => "hashed",
                },
            },
        }))
    }

    fn route(&self, route: &Route) -> Value {
        let methods = |methods: &Vec<Method>| strings(methods);
        json!({
            "name": route.name,
            "match": {
                "host": route.matching.host,
                "path_prefix": route.matching.path_prefix,
                "methods": route.matching.methods.as_ref().map(methods),
            },
            "upstream": self.upstream_of(route).name,
            "idempotency": route.idempotency.as_ref().map(idempotency),
        })
    }
}

fn upstream(upstream: &Upstream) -> Value {
    json!({
        "endpoints": strings(&upstream.endpoints),
        "balance": match upstream.balance {
            Balance::LeastRequests => "least_requests",
            Balance::RoundRobin => "round_robin",
        },
        "connect_timeout": duration(upstream.connect_timeout),
        "request_timeout": duration(upstream.request_timeout),
        "idle_timeout": duration(upstream.idle_timeout),
        "stream_timeout": duration(upstream.stream_timeout),
    })
}

fn idempotency(rules: &Idempotency) -> Value {
    json!({
        "header": rules.header.as_str(),
        "required": rules.required,
        "scope": match &rules.scope.source {
            ScopeSource::Headers(names) => strings(names),
            ScopeSource::None => json!("none"),
        },
        "scope_missing": if rules.scope.anonymous { "anonymous" } else { "reject" },
        "namespace": rules.namespace,
        "key": {
            "max_length": rules.key.max_length,
            "format": match rules.key.format {
                KeyFormat::Any => "any",
                KeyFormat::Uuid => "uuid",
            },
        },
        "fingerprint": fingerprint(&rules.fingerprint.body, &rules.fingerprint.headers),
        "in_progress": match rules.in_progress {
            InProgress::Wait(wait) => json!({ "wait": duration(wait) }),
            InProgress::Reject => json!("reject"),
        },
        "unknown_outcome": match rules.unknown_outcome {
            UnknownOutcome::Reject => json!("reject"),
            UnknownOutcome::Retry { attempts } => json!({ "retry": { "attempts": attempts } }),
        },
        "on_session_loss": match rules.on_session_loss {
            OnSessionLoss::Abort => "abort",
            OnSessionLoss::Settle => "settle",
        },
        "retention": retention(rules.retention),
        "max_request_body": size(rules.max_request_body),
        "max_stored_body": size(rules.max_stored_body),
        "responses": responses(&rules.responses),
        "forward_key": match rules.forward_key {
            ForwardKey::Pass => "pass",
            ForwardKey::Strip => "strip",
        },
        "replay_header": rules.replay_header.as_str(),
        "drop_headers": strings(&rules.drop_headers),
    })
}

fn fingerprint(body: &BodyMode, headers: &[HeaderName]) -> Value {
    let (body, ignored) = match body {
        BodyMode::Raw => ("raw", None),
        BodyMode::Json { ignore } => ("json", Some(strings(ignore))),
        BodyMode::Form => ("form", None),
        BodyMode::Multipart => ("multipart", None),
        BodyMode::None => ("none", None),
    };
    json!({ "body": body, "ignore": ignored, "headers": strings(headers) })
}

fn retention(retention: Retention) -> Value {
    let unknown = retention.unknown.map_or_else(|| "never".to_owned(), duration);
    json!({ "completed": duration(retention.completed), "unknown": unknown })
}

fn responses(responses: &Responses) -> Value {
    let word = |disposition: &Disposition| match disposition {
        Disposition::Store => "store",
        Disposition::Release => "release",
        Disposition::Unknown => "unknown",
    };
    let exact = responses.exact.iter().map(|(status, it)| (status.as_str().to_owned(), it));
    let classes = responses.classes.iter().map(|(class, it)| (format!("{class}xx"), it));
    exact.chain(classes).map(|(name, it)| (name, json!(word(it)))).collect::<Map<_, _>>().into()
}

fn hidden(secret: Option<&Secret>) -> Option<&'static str> {
    secret.map(|_| HIDDEN)
}

fn duration(duration: Duration) -> String {
    if duration.is_zero() {
        return "0s".to_owned();
    }
    Measure::Duration.show(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn size(bytes: u64) -> String {
    Measure::Size.show(bytes)
}

/// Schemes only: who presents them is a secret.
fn tls(files: &TlsFiles) -> Value {
    let identity = files.identity.as_ref();
    json!({
        "ca": files.ca,
        "certificate": identity.map(|identity| &identity.certificate),
        "private_key": identity.map(|identity| &identity.private_key),
    })
}

fn schemes(auth: &[super::model::ZooKeeperAuth]) -> Vec<&str> {
    auth.iter().map(|auth| auth.scheme.as_str()).collect()
}

fn strings<T: ToString>(values: &[T]) -> Value {
    values.iter().map(ToString::to_string).collect()
}

/// What is not set is not written, as in a file.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let set = members.into_iter().filter(|(_, value)| !value.is_null());
            set.map(|(name, value)| (name, without_nulls(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}
