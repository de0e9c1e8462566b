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
    /// With what each of them said when it was asked.
    #[error("no server of ledger.zookeeper.servers gives a session: {servers}")]
    Connect { servers: String, source: Error },
    /// No answer within `Settings::timeout`.
    #[error("no session within ledger.timeout")]
    Overdue,
    #[error("no server gives a session: {0}")]
    Tls(TlsRefusal),
    #[error(transparent)]
    TlsFiles(#[from] TlsMistake),
    #[error(
        "the ensemble does not accept ledger.zookeeper.auth; check its scheme, which every server \
         must know, and its credentials"
    )]
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
        let (reason, is_final) = Self::reason(fault);
        Self::Root { root: layout.root().to_owned(), reason, is_final }
    }

    /// Why nodes cannot be used and what to do about it, and whether waiting mends nothing.
    pub(super) fn reason(fault: &Fault) -> (String, bool) {
        let Some(Refusal::Other(refusal)) = fault.refusal() else {
            return (fault.to_string(), false);
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "the library's errors are open-ended")]
        let (remedy, is_final) = match refusal {
            Error::NoAuth => (
                "present the credentials that its nodes were made with in ledger.zookeeper.auth, \
                 or have its access lists changed",
                true,
            ),
            Error::InvalidAcl => ("no credentials of ledger.zookeeper.auth can own nodes", true),
            Error::Unimplemented => {
                ("the servers are too old: upgrade them to 3.8.4 or later", true)
            }
            Error::NotReadOnly => ("the servers are cut off from their quorum", true),
            Error::QuotaExceeded => ("raise or delete the quota of that path", false),
            _ => return (fault.to_string(), false),
        };
        (format!("{refusal}; {remedy}"), is_final)
    }

    /// Whether waiting mends nothing.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Auth | Self::NoLease { .. } | Self::Threads(_) | Self::TlsFiles(_) => true,
            Self::Root { is_final, .. } => *is_final,
            Self::Connect { .. } | Self::Overdue | Self::Tls(_) => false,
        }
    }
}
