//! How an ensemble is reached and used.

use std::time::Duration;

use crate::{domain::Secret, ledger::zookeeper::TlsFiles};

/// The ensemble, and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZooKeeper {
    /// `host:port` each; never empty.
    pub servers: Vec<String>,
    /// Starts with a slash and does not end with one.
    pub root: String,
    pub session_timeout: Duration,
    /// The servers' own.
    pub tick_time: Duration,
    /// At least 1.
    pub sessions: usize,
    pub auth: Vec<ZooKeeperAuth>,
    /// The files were read once, and were in order.
    pub tls: Option<TlsFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZooKeeperAuth {
    pub scheme: String,
    pub credentials: Secret,
}
