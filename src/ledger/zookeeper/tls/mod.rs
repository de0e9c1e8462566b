//! TLS to the servers: files that are read anew while the gateway runs, and why it fails.

mod diagnosis;
mod expiry;
mod files;
mod mistake;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustls::ClientConfig;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{TlsDynamicCerts, TlsOptions};

pub(super) use self::diagnosis::server_name;
use self::files::{Material, Pems};
pub use self::{
    diagnosis::TlsRefusal,
    files::{TlsFiles, TlsIdentityFiles},
    mistake::{TlsFile, TlsMistake},
};
use crate::{domain::Timestamp, telemetry};

/// What connections are made with at this time.
pub(super) struct Tls {
    files: TlsFiles,
    certs: TlsDynamicCerts,
    current: Mutex<Current>,
}

struct Current {
    pems: Pems,
    config: Arc<ClientConfig>,
}

/// Certificates live for hours, and are replaced well before their end.
const LOOK: Duration = Duration::from_secs(10);

/// Whether a certificate can be for the host of this `host:port`.
pub fn can_be_certified(server: &str) -> bool {
    server_name(server).is_some()
}

// === impl Tls ===

impl Tls {
    pub(super) fn load(files: TlsFiles) -> Result<Self, TlsMistake> {
        // One is enough to refuse a start; `oncegate check` tells all of them.
        let pems = files.read().map_err(|mut mistakes| mistakes.swap_remove(0))?;
        let Material { certs, config } = pems.material()?;
        tell(&pems);
        let current = Mutex::new(Current { pems, config });
        Ok(Self { files, certs: TlsDynamicCerts::new(certs), current })
    }

    pub(super) fn options(&self) -> TlsOptions {
        TlsOptions::new().with_certs(self.certs.clone())
    }

    /// When the first certificate of each file ends, if that can be read.
    pub(super) fn expiries(&self) -> Vec<(TlsFile, Option<Timestamp>)> {
        self.lock().pems.expiries()
    }

    /// For connections that are made now.
    pub(super) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.lock().config)
    }

    /// Why none of the servers is connected to, if TLS is why.
    pub(super) async fn diagnose(&self, servers: &[String]) -> Option<TlsRefusal> {
        let (servers, config) = (servers.to_vec(), self.config());
        let look = tokio::task::spawn_blocking(move || diagnosis::diagnose(&servers, &config));
        look.await.ok().flatten()
    }

    /// Takes what the files hold for connections to come, whenever it changes. Files that are
    /// mistaken change nothing.
    pub(super) async fn follow(self: Arc<Self>, closing: CancellationToken) {
        let mut told = None;
        while closing.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_some() {
            let tls = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || tls.look()).await;
            match looked {
                Ok(Ok(true)) => tracing::info!("files of ledger.zookeeper.tls were read anew"),
                Ok(Ok(false)) => told = None,
                Ok(Err(mistake)) if told.as_ref() != Some(&mistake) => {
                    tracing::error!(
                        error = &mistake as &dyn std::error::Error,
                        "files of ledger.zookeeper.tls changed and are not used"
                    );
                    told = Some(mistake);
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// Whether there was anything new.
    fn look(&self) -> Result<bool, TlsMistake> {
        let pems = self.files.read().map_err(|mut mistakes| mistakes.swap_remove(0))?;
        if pems == self.lock().pems {
            return Ok(false);
        }
        let Material { certs, config } = pems.material()?;
        self.certs.update(certs);
        tell(&pems);
        *self.lock() = Current { pems, config };
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(pems: &Pems) {
    for (file, expiry) in pems.expiries() {
        telemetry::certificate_expires(file.field(), expiry);
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}
