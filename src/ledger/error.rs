//! What can go wrong in a ledger, and whether it may have taken effect all the same.

use std::sync::Arc;

/// Why `begin` could not tell. Nothing was forwarded, and no hold is left.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LedgerError {
    /// No usable session, or the file cannot be written.
    #[error("ledger is unavailable: {reason}")]
    Unavailable {
        reason: String,
        #[source]
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
    /// The session was lost while waiting for the key's lock.
    #[error("session was lost while waiting for the lock")]
    SessionLost,
    /// The session was lost while the intent was written. Its key becomes free again, if it was.
    #[error("session was lost while the attempt began")]
    SessionLostBeginning,
    /// A record is there, but this version cannot read it. Nothing is overwritten.
    #[error("record is unreadable: {reason}")]
    RecordUnreadable { reason: String },
    /// A bound of the ledger is reached (operations in flight, live locks, watched bytes).
    #[error("ledger is at its limit of {what}")]
    Overloaded { what: &'static str },
}

/// Why the end of an attempt is not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndError {
    /// The lock was not ours any more: nothing of this end was stored.
    #[error("the lock was lost before the attempt's end was stored")]
    LockLost,
    /// It could not be written in time. The ledger goes on trying as long as the lock is ours.
    #[error("the attempt's end could not be stored in time: {reason}")]
    NotStored { reason: String },
}

/// Whether a failed end can have taken, or still take, effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    Possible,
}

// === impl EndError ===

impl EndError {
    /// The match has no wildcard arm: a new variant must decide this before it compiles.
    pub fn effect(&self) -> Effect {
        match self {
            Self::LockLost => Effect::None,
            Self::NotStored { .. } => Effect::Possible,
        }
    }
}
