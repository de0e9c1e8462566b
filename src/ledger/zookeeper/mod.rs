//! The ledger of any number of gateways: locks and records in a ZooKeeper ensemble.
//!
//! Every change of a key is one transaction that names a lock node of ours, so a session that is
//! over cannot change anything. What a gateway *believes* to hold is bounded by the lease of its
//! session, which ends before the servers can have let anyone else in. Each attempt is a task of
//! its own from before its first request is sent until its fate is known: callers only watch.

mod adopt;
mod begin;
mod census;
mod client;
mod connect;
mod core;
mod examine;
mod fault;
mod held;
mod lease;
mod lock;
mod operator;
mod paths;
mod prepare;
mod reconcile;
mod servers;
mod session;
mod sessions;
mod settings;
mod stored;
mod sweep;
#[cfg(test)]
mod tests;
mod time;
mod tls;
mod turns;
mod undo;

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zookeeper_client::Error;

use self::{
    core::Core,
    fault::{Fault, Refusal},
    paths::Layout,
    tls::Tls,
};
pub use self::{
    examine::examine,
    settings::{Auth, Settings, Sweep},
    tls::{TlsFile, TlsFiles, TlsIdentityFiles, TlsMistake, TlsRefusal, can_be_certified},
};
use super::{Begin, Begun, BoxFuture, Ledger, LedgerError};
use crate::domain::{KeyId, Record};

/// A ledger in an ensemble. See the [module docs](self).
///
/// Dropping it ends its sessions without waiting; [`close`](Ledger::close) tells when that is
/// done.
#[derive(Debug)]
pub struct ZooKeeper {
    core: Arc<Core>,
    /// Sessions have threads of their own: a busy gateway must not starve their heartbeats.
    runtime: Option<tokio::runtime::Runtime>,
}

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

/// What is left of a lease just before a heartbeat is acknowledged; zero if such a session could
/// not keep one.
pub fn lease(session_timeout: Duration, tick_time: Duration) -> Duration {
    lease::Terms { timeout: session_timeout, tick: tick_time }.shortest_lease()
}

/// The node of a key below `root`.
pub fn znode_of(root: &str, key: &KeyId) -> String {
    Layout::new(root).key(key).node
}

/// How long a start waits for further sessions once it has one.
const OTHERS: Duration = Duration::from_secs(1);

// === impl ZooKeeper ===

impl ZooKeeper {
    /// Waits up to `settings.timeout` for the first session. Without one it goes on trying, and
    /// is unavailable until then.
    ///
    /// # Errors
    ///
    /// What no waiting mends: refused credentials, a root without permission, sessions too short
    /// for a lease, files for TLS that are of no use. Servers that refuse TLS may be mended.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: attempts run on the one that opens the ledger.
    pub async fn open(settings: Settings) -> Result<Self, Arc<OpenError>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("zookeeper")
            .enable_all()
            .build()
            .map_err(|source| Arc::new(OpenError::Threads(source)))?;
        let patience = settings.timeout;
        let tls = settings.tls.clone().map(Tls::load).transpose();
        let tls = tls.map_err(|mistake| Arc::new(mistake.into()))?.map(Arc::new);
        let core = Core::new(settings, tls.clone());
        if let Some(tls) = tls {
            drop(runtime.spawn(tls.follow(core.closing.clone())));
        }
        core.sessions.start(runtime.handle());
        reconcile::start(&core, runtime.handle());
        sweep::start(&core, runtime.handle());
        census::start(&core, runtime.handle());
        let ledger = Self { core, runtime: Some(runtime) };
        match timeout(patience, ledger.core.sessions.first()).await {
            Ok(Err(error)) => return Err(error),
            // The others are as good as there: keys are spread over them from the start.
            Ok(Ok(())) => drop(timeout(OTHERS, ledger.core.sessions.all_open()).await),
            Err(_elapsed) => {}
        }
        Ok(ledger)
    }
}

#[cfg(test)]
impl ZooKeeper {
    /// As `kill -9`: no end is stored any more. The servers end the sessions at once, so that a
    /// test need not wait for their timeouts.
    async fn kill(&self) {
        let sessions = self.core.sessions.all();
        self.core.stop();
        for session in sessions {
            if let Some(mut watcher) = session.client.close() {
                watcher.changed().await;
            }
        }
    }
}

impl Ledger for ZooKeeper {
    fn begin(&self, begin: Begin) -> BoxFuture<'_, Result<Begun, LedgerError>> {
        Box::pin(begin::begin(&self.core, begin))
    }

    fn remaining(&self, record: &Record) -> Duration {
        record.expires_at.since(self.core.time().now())
    }

    fn health(&self) -> Result<(), LedgerError> {
        self.core.health()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.core.close())
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.core.stop();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

// === impl OpenError ===

impl OpenError {
    fn root(layout: &Layout, fault: &Fault) -> Self {
        let (reason, is_final) = Self::reason(fault);
        Self::Root { root: layout.root().to_owned(), reason, is_final }
    }

    /// Why nodes cannot be used and what to do about it, and whether waiting mends nothing.
    fn reason(fault: &Fault) -> (String, bool) {
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
    fn is_final(&self) -> bool {
        match self {
            Self::Auth | Self::NoLease { .. } | Self::Threads(_) | Self::TlsFiles(_) => true,
            Self::Root { is_final, .. } => *is_final,
            Self::Connect { .. } | Self::Overdue | Self::Tls(_) => false,
        }
    }
}
