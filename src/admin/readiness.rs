//! Whether this gateway should be sent requests.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::ledger::{Ledger, LedgerError};

/// What `GET /readyz` is answered from. Clones share the flag.
#[derive(Clone, Debug)]
pub struct Readiness {
    ledger: Arc<dyn Ledger>,
    draining: Arc<AtomicBool>,
}

/// Why it should not.
#[derive(Debug)]
pub(super) enum NotReady {
    Draining,
    Ledger(LedgerError),
}

// === impl Readiness ===

impl Readiness {
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, draining: Arc::default() }
    }

    /// From now on it is never ready again. Call when told to stop, before anything closes.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Without the ledger keyed requests still get an honest answer and unkeyed routes go on, so
    /// a probe may leave it out.
    pub(super) fn check(&self, with_ledger: bool) -> Result<(), NotReady> {
        if self.draining.load(Ordering::Relaxed) {
            return Err(NotReady::Draining);
        }
        if with_ledger {
            self.ledger.health().map_err(NotReady::Ledger)?;
        }
        Ok(())
    }
}

// === impl NotReady ===

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Draining => f.write_str("draining"),
            Self::Ledger(error) => error.fmt(f),
        }
    }
}
