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
mod error;
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

use self::{core::Core, paths::Layout, tls::Tls};
pub use self::{
    error::OpenError,
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
    /// Sessions have a thread of their own: a busy gateway must not starve their heartbeats.
    runtime: Option<tokio::runtime::Runtime>,
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
        let core = Core::new(settings, tls.clone(), runtime.handle().clone());
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
