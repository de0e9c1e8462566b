//! The one place that decides who executes and what was answered: locks and records together.

pub(crate) mod codec;
pub mod embedded;
mod ensemble;
mod error;
mod finding;
mod gate;
mod hold;
mod operator;
#[cfg(test)]
pub mod suite;
pub mod zookeeper;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;

pub use self::{
    ensemble::{Ensemble, Server, SessionView},
    error::{Effect, EndError, LedgerError},
    finding::{Finding, Grade},
    gate::{Gate, Lapsed, Lease},
    hold::{End, Ended, Held, Hold, LockPlace, Observer},
    operator::{Answer, DecideError, Entry, ListError, Operator, Page, Query},
};
use crate::domain::{Fingerprint, Intent, KeyId, Origin, Record, Retention, Subject};

/// A boxed future: the ledger is chosen at start, so its methods are called through a table.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Holds the lock and the record of every key.
///
/// # Contract
///
/// - At most one [`Hold`] of a key lives at a time, over all gateways that share the ledger.
/// - The intent is durable before [`Begun::Owner`] is given; the end of an attempt is durable
///   before [`Hold::commit`], [`Hold::release`] and [`Hold::abandon`] return.
/// - The fencing token of a key grows strictly from attempt to attempt.
/// - A committed answer is given to every later `begin` of an equal request until its retention
///   ends, and no other answer is.
/// - Another request under the same key is refused before anything else is said about the key.
/// - A key whose hold was dropped, or whose holder vanished, after the gate was opened is
///   *unknown*: it is not granted again, unless the caller asks for a takeover, until
///   `retention.unknown` is over.
/// - A key whose hold ended before the gate was opened is granted again, as if never begun, unless
///   an earlier attempt may have run: then it is unknown.
/// - Cancelling `begin` at any await point leaves no hold and no waiter behind.
pub trait Ledger: fmt::Debug + Send + Sync + 'static {
    /// Takes the key's lock and writes the intent, or tells why not.
    fn begin(&self, begin: Begin) -> BoxFuture<'_, Result<Begun, LedgerError>>;

    /// For how long `record`, which a `begin` found, is still to be given to retries, by the
    /// ledger's own time: no wall clock of this machine may prolong it. A ledger that cannot tell
    /// says zero, and none of its records is kept in memory.
    fn remaining(&self, _record: &Record) -> Duration {
        Duration::ZERO
    }

    /// Whether a `begin` could succeed now; the error says why not.
    fn health(&self) -> Result<(), LedgerError>;

    /// Waits until every end that was asked for is durable, then lets go of everything.
    ///
    /// Later calls of `begin` fail with [`LedgerError::Unavailable`].
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A request for a key's lock.
#[derive(Clone, Debug)]
pub struct Begin {
    pub key: KeyId,
    /// The request itself, to be compared by the recipe that a stored fingerprint names.
    pub subject: Arc<Subject>,
    /// Its fingerprint by the current recipe, written into the intent.
    pub fingerprint: Fingerprint,
    pub origin: Origin,
    pub retention: Retention,
    pub takeover: Takeover,
    /// Until when to wait for a live holder; `None` says at once that the key is in progress.
    pub wait_until: Option<Instant>,
    /// Is told of the lock before it is acquired.
    pub observer: Option<Arc<dyn Observer>>,
}

/// What to do with a key whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// Report it.
    Never,
    /// Begin another attempt with a higher token, as long as its number is at most this.
    UpTo(u32),
}

/// How a `begin` came out.
#[derive(Debug)]
pub enum Begun {
    /// The caller executes.
    Owner(Hold),
    Completed(Arc<Record>),
    /// Another request came first under this key; this is what is known of it.
    FingerprintMismatch(KeyState),
    /// A live holder has it, and the wait ran out.
    InProgress,
    /// An earlier attempt may have run, and nobody knows how it ended.
    Unknown(Intent),
}

/// The states of a key that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyState {
    InProgress,
    Unknown,
    Completed,
}

// === impl Begin ===

impl Begin {
    /// Whether this is the request that `stored` was made of.
    pub(crate) fn is_retry_of(&self, stored: &Fingerprint) -> bool {
        self.fingerprint.is_retry_of(stored, &self.subject)
    }
}
