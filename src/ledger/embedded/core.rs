//! What the parts of an embedded ledger share.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    damaged::Damaged,
    driver::Driver,
    operation::Operation,
    store::{Mark, Origin, Store, StoreError},
    sweep::Sweeper,
    table::Table,
    time::LedgerTime,
};
use crate::{
    domain::{FencingToken, Timestamp},
    ledger::{Lease, LedgerError},
};

pub(super) struct Core {
    pub(super) store: Box<dyn Store>,
    pub(super) table: Arc<Table>,
    pub(super) timeout: Duration,
    pub(super) driver: Driver,
    pub(super) sweeper: Sweeper,
    pub(super) damaged: Damaged,
    /// No new begins.
    pub(super) closing: CancellationToken,
    /// The last one that was given out.
    token: AtomicU64,
    time: LedgerTime,
    /// Why the file cannot be written at the moment.
    trouble: watch::Sender<Option<String>>,
    over: CancellationToken,
    lease: Arc<dyn Lease>,
}

/// The ledger was closed: another process may have the file.
#[derive(Debug)]
struct UntilClosed(CancellationToken);

// === impl Core ===

impl Core {
    pub(super) fn new(
        store: Box<dyn Store>,
        driver: Driver,
        timeout: Duration,
        (time, sweeper): (LedgerTime, Sweeper),
        token: FencingToken,
    ) -> Self {
        let over = CancellationToken::new();
        Self {
            store,
            table: Table::new(),
            timeout,
            driver,
            sweeper,
            damaged: Damaged::default(),
            closing: CancellationToken::new(),
            token: AtomicU64::new(token.get()),
            time,
            trouble: watch::Sender::new(None),
            lease: Arc::new(UntilClosed(over.clone())),
            over,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// What expires by then is over.
    pub(super) fn horizon(&self) -> Timestamp {
        self.time.horizon()
    }

    pub(super) fn time(&self) -> &LedgerTime {
        &self.time
    }

    pub(super) fn next_token(&self) -> FencingToken {
        FencingToken::new(self.token.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { now: self.time.mark(), token: FencingToken::new(self.token.load(Ordering::Relaxed)) }
    }

    pub(super) fn lease(&self) -> Arc<dyn Lease> {
        Arc::clone(&self.lease)
    }

    /// Cancelled once no lock is ours any more.
    pub(super) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Hands an operation to the driver. It is dropped if the ledger is closed.
    pub(super) fn submit(self: &Arc<Self>, operation: Operation) {
        self.driver.submit(self, operation);
    }

    pub(super) fn health(&self) -> Result<(), LedgerError> {
        if self.closing.is_cancelled() {
            return Err(closed());
        }
        match &*self.trouble.borrow() {
            None => Ok(()),
            Some(reason) => Err(LedgerError::Unavailable { reason: reason.clone(), source: None }),
        }
    }

    /// Why something waits at the moment.
    pub(super) fn trouble(&self) -> String {
        let trouble = self.trouble.borrow().clone();
        trouble.unwrap_or_else(|| format!("the file did not answer within {:?}", self.timeout))
    }

    /// The file could not be written, or opened.
    pub(super) fn fail(&self, reason: &StoreError) {
        let before = self.trouble.send_replace(Some(reason.to_string()));
        if before.is_none() {
            tracing::error!(%reason, "file failed and is opened again until it works");
        }
    }

    pub(super) fn recover(&self) {
        if self.trouble.send_if_modified(|trouble| trouble.take().is_some()) {
            tracing::info!("file works again");
        }
    }

    /// A reader met an error: the writer looks into it, unless it knows of one already. Told
    /// again while it is at work on that, it would open a file again that works.
    pub(super) fn suspect(&self, reason: &StoreError) {
        if reason.origin() == Origin::Writer {
            return;
        }
        let is_new = self.trouble.send_if_modified(|trouble| {
            let is_new = trouble.is_none();
            trouble.get_or_insert_with(|| reason.to_string());
            is_new
        });
        if is_new {
            self.driver.suspect();
        }
    }

    /// Resolves once the file can be used.
    pub(super) async fn usable(&self) {
        // The sender lives as long as `self`, so this only ends with what is waited for.
        drop(self.trouble.subscribe().wait_for(Option::is_none).await);
    }

    /// The last step of every end: locks first, then the file.
    pub(super) fn let_go(&self) {
        self.over.cancel();
        self.store.close();
    }
}

pub(super) fn closed() -> LedgerError {
    LedgerError::Unavailable { reason: "the ledger is closed".to_owned(), source: None }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("store", &self.store)
            .field("trouble", &*self.trouble.borrow())
            .finish_non_exhaustive()
    }
}

// === impl UntilClosed ===

impl Lease for UntilClosed {
    fn is_running(&self) -> bool {
        !self.0.is_cancelled()
    }
}
