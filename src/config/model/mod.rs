//! A configuration in which every value has been checked.

mod route;
mod upstream;
mod zookeeper;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;

pub use self::{
    route::{
        Disposition, FingerprintRule, ForwardKey, Idempotency, InProgress, Match, OnSessionLoss,
        Responses, Route, UnknownOutcome,
    },
    upstream::{Balance, Endpoint, Upstream},
    zookeeper::{ZooKeeper, ZooKeeperAuth},
};
use crate::domain::Secret;

/// The whole file. Secrets in it never show in `Debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub listen: Listen,
    pub admin: Admin,
    /// As written; a random suffix is added at each start.
    pub gateway_id: String,
    pub ledger: Ledger,
    pub limits: Limits,
    /// HMAC for key ids and fingerprints instead of plain SHA-256.
    pub key_secret: Option<Secret>,
    /// In file order; names are unique.
    pub upstreams: Vec<Upstream>,
    /// In file order, which is the order of matching; names are unique; never empty.
    pub routes: Vec<Route>,
    /// How long requests are still served after SIGTERM before the listener closes; may be zero.
    pub drain_delay: Duration,
    /// How long requests in flight may still take after the listener closed.
    pub drain_timeout: Duration,
    pub log: Log,
    /// `None` makes no spans.
    pub tracing: Option<Tracing>,
}

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// A collector that takes OTLP over HTTP.
    pub otlp_endpoint: Endpoint,
}

/// The public listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    pub address: SocketAddr,
    /// Peers whose `X-Forwarded-*` is appended to rather than replaced.
    pub trusted_proxies: Vec<IpNet>,
    /// Until the whole request head is there.
    pub header_timeout: Duration,
    /// Keyed requests: for the whole body. Unkeyed ones: between bytes.
    pub body_timeout: Duration,
    pub max_connections: usize,
    /// In bytes, of the whole request head.
    pub max_header_size: u64,
}

/// The operator's listener: metrics, probes and the API over keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    pub address: SocketAddr,
    /// Always there when the address is not loopback.
    pub token: Option<Secret>,
}

/// Where keys and answers are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// How long a keyed request waits for a usable ledger before it is refused.
    pub timeout: Duration,
    pub kind: LedgerKind,
}

/// Which ledger, with exactly the settings it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerKind {
    /// One process on one machine.
    Embedded(Storage),
    /// Any number of gateways that share an ensemble.
    ZooKeeper(ZooKeeper),
}

/// What the embedded ledger writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// An answer is on disk before the client sees it.
    Fsync {
        /// As written: a relative path counts from the working directory.
        path: PathBuf,
    },
    /// A restart forgets every key: for tests and demos.
    Memory,
}

/// Bounds of the whole process; none is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub max_in_flight: usize,
    pub max_in_flight_per_scope: usize,
    pub max_waiters_per_key: usize,
    /// In bytes: request and response bodies held at once.
    pub buffered_bodies: u64,
    /// In bytes.
    pub replay_cache: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    pub level: tracing::Level,
    pub keys: LogKeys,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Json,
    Text,
}

/// How an idempotency key is written in a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogKeys {
    #[default]
    Plain,
    /// The key id stands in for the key.
    Hashed,
}

// === impl Config ===

impl Config {
    /// The upstream that `route` names.
    ///
    /// # Panics
    ///
    /// Never for a route of this configuration: names were checked when it was read.
    pub fn upstream_of(&self, route: &Route) -> &Upstream {
        &self.upstreams[route.upstream]
    }
}
