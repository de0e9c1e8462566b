//! Opens the ledger that the configuration names.

use std::{io, sync::Arc, thread};

use tokio::{runtime::Handle, sync::oneshot};

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
    #[error("could not start the thread that opens the ledger's file")]
    Thread(#[source] io::Error),
}

pub(super) async fn open(config: &Config, gateway: &Arc<str>) -> Result<Opened, OpenError> {
    match &config.ledger.kind {
        LedgerKind::Embedded(storage) => {
            let embedded = open_file(build::embedded(config, storage)).await?;
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

/// Opening a file blocks, and after a crash for a while. It has a thread of its own, for which the
/// end of the process does not wait.
async fn open_file(settings: embedded::Settings) -> Result<Arc<Embedded>, OpenError> {
    let runtime = Handle::current();
    let (tell, opened) = oneshot::channel();
    let opening = move || {
        let _entered = runtime.enter();
        // Nobody asks any more when the gateway was told to stop.
        tell.send(Embedded::open(&settings)).ok();
    };
    let thread = thread::Builder::new().name("ledger-opener".to_owned()).spawn(opening);
    let thread = thread.map_err(OpenError::Thread)?;
    match (opened.await, thread.join()) {
        (Ok(ledger), _) => Ok(Arc::new(ledger?)),
        (Err(_), Err(panicked)) => std::panic::resume_unwind(panicked),
        (Err(closed), Ok(())) => Err(OpenError::Thread(io::Error::other(closed))),
    }
}
