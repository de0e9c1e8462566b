//! The ledger of one process on one machine: locks in memory, intents and records in one file.
//!
//! A key's lock is a [`Claim`](table::Claim) in this process, and the file has no second reader:
//! whoever has the claim may decide from a look into the file. Operations are decided first and
//! stored afterwards, by a writer that puts all that waits into one transaction, so the store
//! decides nothing and may apply a change twice.

mod begin;
mod core;
mod damaged;
mod driver;
mod examine;
mod held;
mod list;
mod operation;
mod operator;
mod queue;
mod settings;
mod store;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod writer;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use self::{
    core::Core,
    driver::Driver,
    store::{
        Store,
        file::{FileStore, Opener},
        memory::MemoryStore,
    },
    sweep::Sweeper,
    time::LedgerTime,
};
pub use self::{
    examine::examine,
    settings::{Durability, Settings, Sweep},
    store::file::OpenError,
};
use super::{Begin, Begun, BoxFuture, Ledger, LedgerError, codec::Stored};
use crate::domain::{Cause, Clock, FencingToken, Record, Timestamp};

/// A ledger for one process. See the [module docs](self).
///
/// Dropping it closes it in the background; [`close`](Ledger::close) tells when that is done.
#[derive(Debug)]
pub struct Embedded {
    core: Arc<Core>,
    durability: Durability,
}

/// What is stored, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Keys that an attempt holds.
    pub in_progress: u64,
    pub completed: u64,
    pub unknown: u64,
    /// Of completed and unknown values, without the file's own overhead.
    pub bytes: u64,
}

// === impl Embedded ===

impl Embedded {
    /// Opens the file; every attempt that was open in it becomes unknown.
    ///
    /// Blocks: after a crash the engine looks through the whole file first.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        match &settings.durability {
            Durability::Memory => Ok(Self::in_memory(settings, Driver::Inline)),
            Durability::Fsync { path } => {
                let opener = Opener::file(path.clone());
                Self::in_file(settings, opener)
            }
        }
    }

    /// In memory, but each step takes `latency` of tokio's clock, so that a test in paused time
    /// can drop or overtake it at every moment.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[cfg(test)]
    pub(crate) fn with_latency(settings: &Settings, latency: Duration) -> Self {
        Self::in_memory(settings, Driver::delayed(latency))
    }

    /// Cheap: counters that are kept along the way.
    pub fn stats(&self) -> Stats {
        let totals = self.core.store.totals();
        Stats {
            in_progress: self.core.table.in_progress() as u64,
            completed: totals.completed,
            unknown: totals.unknown,
            bytes: totals.bytes,
        }
    }

    fn in_memory(settings: &Settings, driver: Driver) -> Self {
        let time = LedgerTime::starting(settings.clock.clone(), None);
        let token = first_token(&settings.clock);
        Self::new(settings, Box::new(MemoryStore::default()), driver, (time, token))
    }

    fn in_file(settings: &Settings, opener: Opener) -> Result<Self, OpenError> {
        let path = opener.path().to_owned();
        let start = store::Mark { now: settings.clock.wall(), token: first_token(&settings.clock) };
        let store = FileStore::open(opener, start, &orphan)?;
        let mark = store.mark();
        let time = LedgerTime::starting(settings.clock.clone(), store.remembered());
        let driver = Driver::thread();
        let ledger = Self::new(settings, Box::new(store), driver, (time, mark.token));
        Driver::start(&ledger.core).map_err(|source| OpenError::Io { path, source })?;
        Ok(ledger)
    }

    fn new(
        settings: &Settings,
        store: Box<dyn Store>,
        driver: Driver,
        (time, token): (LedgerTime, FencingToken),
    ) -> Self {
        let sweeper = Sweeper::new(settings.sweep, time.now());
        let core = Core::new(store, driver, settings.timeout, (time, sweeper), token);
        Self { core: Arc::new(core), durability: settings.durability.clone() }
    }
}

/// Tokens start at the time in microseconds: an upstream that remembers them is not fooled by a
/// ledger that was thrown away, as long as fewer than a million begin in a second.
fn first_token(clock: &Clock) -> FencingToken {
    FencingToken::new(clock.wall().as_millis().saturating_mul(1000))
}

/// The holder of this intent was the process that had the file before: its outcome is unknown
/// from now on. What cannot be read stays as it is, for ever.
fn orphan(now: Timestamp, value: &Bytes) -> (Timestamp, Option<Vec<u8>>) {
    match Stored::decode(value) {
        Ok(Stored::Intent { mut intent, .. }) => {
            intent.cause = Some(Cause::HolderGone);
            let (expires_at, value) = held::unknown(&intent, now);
            (expires_at, Some(value))
        }
        Ok(Stored::Completed(_)) | Err(_) => (Timestamp::from_millis(u64::MAX), None),
    }
}

impl Ledger for Embedded {
    fn begin(&self, begin: Begin) -> BoxFuture<'_, Result<Begun, LedgerError>> {
        Box::pin(begin::begin(&self.core, begin))
    }

    fn remaining(&self, record: &Record) -> Duration {
        record.expires_at.since(self.core.horizon())
    }

    fn health(&self) -> Result<(), LedgerError> {
        self.core.health()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.core.closing.cancel();
        self.core.driver.close();
        Box::pin(self.core.driver.closed(&self.core))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.core.closing.cancel();
        self.core.driver.close();
    }
}
