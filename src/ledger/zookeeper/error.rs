//! Why a ledger in an ensemble has no session.

use std::time::Duration;

use zookeeper_client::Error;

use super::{
    fault::{Fault, Refusal},
    paths::Layout,
    tls::{TlsMistake, TlsRefusal},
};

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "no server of {servers} gives a session ({source}); are they ZooKeeper servers with a \
         quorum, can they be reached from here, and is ledger.zookeeper.tls there if they want it?"
    )]
    Connect { servers: String, source: Error },
    #[error("no server gives a session: {0}")]
    Tls(TlsRefusal),
    #[error(transparent)]
    TlsFiles(#[from] TlsMistake),
    #[error("the ensemble does not accept ledger.zookeeper.auth")]
    Auth,
    #[error(
        "the servers give sessions of {negotiated:?}, too short for a lease with a tick time of \
         {tick:?}; raise ledger.zookeeper.session_timeout, or the servers' maxSessionTimeout"
    )]
    NoLease { negotiated: Duration, tick: Duration },
    #[error("ledger.zookeeper.root {root} cannot be used: {reason}")]
    Root { root: String, reason: String, is_final: bool },
    #[error("could not start the sessions' threads")]
    Threads(#[source] std::io::Error),
}

// === impl OpenError ===

impl OpenError {
    pub(super) fn root(layout: &Layout, fault: &Fault) -> Self {
        let is_final = matches!(
            fault.refusal(),
            Some(Refusal::Other(Error::NoAuth | Error::InvalidAcl | Error::NotReadOnly))
        );
        Self::Root { root: layout.root().to_owned(), reason: fault.to_string(), is_final }
    }

    /// Whether waiting mends nothing.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Auth | Self::NoLease { .. } | Self::Threads(_) | Self::TlsFiles(_) => true,
            Self::Root { is_final, .. } => *is_final,
            Self::Connect { .. } | Self::Tls(_) => false,
        }
    }
}
