//! Where the embedded ledger keeps its values; decides nothing.

pub(super) mod file;
mod layout;
pub(super) mod memory;

use std::{fmt, ops::ControlFlow};

use bytes::Bytes;

use crate::domain::{FencingToken, KeyId, Timestamp};

/// Keeps intents and settled values.
///
/// # Contract
///
/// - A change that was applied is durable, and every later `find` sees it.
/// - Changes may be applied again: the second time changes nothing. So a transaction whose
///   commit failed, and that may or may not be durable, is repeated as it is.
/// - At most one change of a key is under way at a time; the table of locks sees to that.
pub(super) trait Store: fmt::Debug + Send + Sync {
    fn find(&self, key: &KeyId) -> Result<Found, StoreError>;

    /// Applies all of `changes` in one transaction, or none.
    fn apply(
        &self,
        changes: &mut dyn Iterator<Item = &Change>,
        mark: Mark,
    ) -> Result<(), StoreError>;

    /// Deletes at most `most` settled values that expired by `mark.now`; gives their number.
    fn sweep(&self, mark: Mark, most: usize) -> Result<usize, StoreError>;

    /// Shows settled values, those that expire last first, from right before `before`, until
    /// `visit` breaks. Whether all were shown.
    fn walk(
        &self,
        before: Option<Place>,
        visit: &mut dyn FnMut(Row<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError>;

    /// Opens it again after an error.
    fn reopen(&self) -> Result<(), StoreError>;

    fn close(&self);

    fn totals(&self) -> Totals;
}

/// One step in the life of a key.
#[derive(Debug)]
pub(super) enum Change {
    Begin {
        key: KeyId,
        intent: Vec<u8>,
        /// An expired value, or the unknown attempt that is taken over.
        replaces: Option<Place>,
    },
    Settle {
        key: KeyId,
        place: Place,
        kind: Kind,
        value: Vec<u8>,
    },
    Free {
        key: KeyId,
    },
    /// An operator's word on an attempt that nobody holds: a record takes its place, or nothing.
    Decide {
        key: KeyId,
        replaces: Option<Place>,
        record: Option<(Place, Vec<u8>)>,
    },
}

/// Where a settled value lies. Ordered by expiry, so that the sweep finds what has expired at the
/// front; and most values are appended at the end, so that one transaction dirties few pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) expires_at: Timestamp,
    /// Tells apart what expires in the same millisecond.
    pub(super) token: FencingToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Completed,
    Unknown,
}

/// What is stored for a key.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    Held(Bytes),
    Settled(Place, Bytes),
}

/// A settled value on a walk.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) place: Place,
    pub(super) kind: Kind,
    pub(super) key: KeyId,
    pub(super) value: &'a [u8],
}

/// What must never run backwards, stored with every transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) now: Timestamp,
    /// At least the highest token that was given out.
    pub(super) token: FencingToken,
}

/// How much is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) completed: u64,
    pub(super) unknown: u64,
    /// Of settled values, without what the file itself costs.
    pub(super) bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("the file is being opened again after an error")]
    Closed,
    #[error("another file has taken the place of the ledger's")]
    Replaced,
    #[error("the storage engine panicked")]
    Panicked,
    #[error(transparent)]
    Redb(#[from] redb::Error),
}

// === impl Place ===

impl Place {
    pub(super) fn is_expired(self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

// === impl Totals ===

impl Totals {
    fn add(&mut self, kind: Kind, bytes: usize) {
        *self.count(kind) += 1;
        self.bytes += bytes as u64;
    }

    fn subtract(&mut self, kind: Kind, bytes: usize) {
        let count = self.count(kind);
        *count = count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    fn count(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Completed => &mut self.completed,
            Kind::Unknown => &mut self.unknown,
        }
    }
}
