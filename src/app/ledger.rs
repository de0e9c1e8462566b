//! Opens the ledger that the configuration names.

use std::sync::Arc;

use super::build;
use crate::{
    config::{Config, LedgerKind},
    ledger::{
        Ledger, Operator,
        embedded::{self, Embedded},
        zookeeper::{self, ZooKeeper},
    },
};

/// A ledger, and what only one kind of it tells.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) operator: Arc<dyn Operator>,
    /// Knows what is stored at any time; in an ensemble the sweeper counts.
    pub(super) embedded: Option<Arc<Embedded>>,
}

/// Why there is no ledger.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Embedded(#[from] embedded::OpenError),
    #[error(transparent)]
    ZooKeeper(#[from] Arc<zookeeper::OpenError>),
}

pub(super) async fn open(config: &Config, gateway: &Arc<str>) -> Result<Opened, OpenError> {
    match &config.ledger.kind {
        LedgerKind::Embedded(storage) => {
            let settings = build::embedded(config, storage);
            // Opening a file blocks, and after a crash for a while.
            let opened = tokio::task::spawn_blocking(move || Embedded::open(&settings)).await;
            let embedded = match opened {
                Ok(opened) => Arc::new(opened?),
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            };
            Ok(Opened {
                ledger: Arc::clone(&embedded) as _,
                operator: Arc::clone(&embedded) as _,
                embedded: Some(embedded),
            })
        }
        LedgerKind::ZooKeeper(ensemble) => {
            let settings = build::zookeeper(config, ensemble, Arc::clone(gateway));
            let zookeeper = Arc::new(ZooKeeper::open(settings).await?);
            Ok(Opened { ledger: Arc::clone(&zookeeper) as _, operator: zookeeper, embedded: None })
        }
    }
}
