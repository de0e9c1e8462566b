//! What a ledger in an ensemble is told at start.

use std::{sync::Arc, time::Duration};

use zookeeper_client::Acls;

use super::tls::TlsFiles;
use crate::domain::{Clock, Secret};

#[derive(Clone, Debug)]
pub struct Settings {
    /// `host:port` each.
    pub servers: Vec<String>,
    /// The path below which everything is; one per deployment.
    pub root: String,
    /// Asked for; the servers may give another.
    pub session_timeout: Duration,
    /// The servers' tick time: half of it shortens the lease.
    pub tick_time: Duration,
    /// How many sessions the keys are spread over, at least 1.
    pub sessions: usize,
    /// All are presented; with any, every node is closed to everyone else.
    pub auth: Vec<Auth>,
    /// Without it, whatever is said to the servers can be read on the way.
    pub tls: Option<TlsFiles>,
    /// How long a `begin` waits for a usable session, and an end until it is called not stored.
    pub timeout: Duration,
    /// This process, with its random suffix.
    pub gateway: Arc<str>,
    pub clock: Clock,
    pub sweep: Sweep,
}

/// What proves who this gateway is.
#[derive(Clone, Debug)]
pub struct Auth {
    /// `digest`, usually.
    pub scheme: String,
    /// For `digest`, `user:password`.
    pub credentials: Secret,
}

/// How fast expired records are deleted, by the one gateway that is elected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// From the end of one pass to the begin of the next.
    pub interval: Duration,
    /// Keys looked at in a second, at most.
    pub rate: u32,
}

// === impl Settings ===

impl Settings {
    /// What every node is made with.
    pub(super) fn acls(&self) -> Acls<'static> {
        if self.auth.is_empty() { Acls::anyone_all() } else { Acls::creator_all() }
    }
}

// === impl Sweep ===

impl Default for Sweep {
    fn default() -> Self {
        Self { interval: Duration::from_mins(5), rate: 500 }
    }
}
