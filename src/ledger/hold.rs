//! The right to run a key once, and how it ends.

use std::{fmt, sync::Arc};

use super::{BoxFuture, EndError, Gate};
use crate::domain::{Cause, FencingToken, Record, StoredResponse};

/// The right to run one attempt of a key, owned by the task that executes it.
///
/// A hold always knows how it would end if it were dropped now: before its [`Gate`] is passed a
/// drop frees the key, from then on it leaves the key unknown. So the task may be dropped at any
/// await point.
pub struct Hold {
    token: FencingToken,
    attempt: u32,
    gate: Gate,
    /// `None` only once the end was asked for.
    held: Option<Box<dyn Held>>,
}

/// Where a lock is, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPlace {
    pub path: Arc<str>,
    pub session: i64,
    /// Its node was made before it was known whether it would be the owner's; whoever asked for
    /// it was told then.
    pub queued: bool,
}

/// Is told what happens to a request's lock before it is acquired, from any task.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A place in the queue was taken.
    fn queued(&self, place: &LockPlace);

    /// The one before it in the queue changed.
    fn woken(&self, place: &LockPlace);
}

/// A ledger's side of a [`Hold`].
///
/// # Contract
///
/// - `end` takes effect when it is called: the ledger's own task carries it on, and the future
///   only watches. Dropping the future changes nothing.
/// - `end` is repeated by the ledger as long as the lock is ours.
pub trait Held: Send + Sync {
    fn end(self: Box<Self>, end: End) -> BoxFuture<'static, Result<Ended, EndError>>;

    /// Resolves when the lock is, or may be, not ours any more; never while it surely is.
    fn lost(&self) -> BoxFuture<'static, ()>;

    /// Takes the key again, after the lock was lost, for the same attempt. `gate` is the one that
    /// it passed.
    ///
    /// Only while the record is still the attempt's intent; else, and where a lost lock cannot be
    /// taken again, [`EndError::LockLost`].
    fn adopt(self: Box<Self>, gate: Gate) -> BoxFuture<'static, Result<Hold, EndError>> {
        drop(gate);
        Box::pin(std::future::ready(Err(EndError::LockLost)))
    }

    /// `None` where locks have no place outside this process.
    fn place(&self) -> Option<LockPlace> {
        None
    }
}

/// What is to become of the key.
#[derive(Debug)]
pub enum End {
    Commit(StoredResponse),
    /// Provably not executed. Frees the key, unless an earlier attempt may have run.
    Release,
    Abandon(Cause),
}

/// What became of the key.
#[derive(Clone, Debug)]
pub enum Ended {
    /// With what is stored.
    Completed(Arc<Record>),
    /// An operator stated the outcome meanwhile. What is stored is the only answer.
    Decided(Arc<Record>),
    Released,
    Unknown,
}

// === impl Hold ===

impl Hold {
    pub fn new(token: FencingToken, attempt: u32, gate: Gate, held: Box<dyn Held>) -> Self {
        Self { token, attempt, gate, held: Some(held) }
    }

    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// 1 is the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    pub fn place(&self) -> Option<LockPlace> {
        self.held.as_ref().and_then(|held| held.place())
    }

    /// Resolves when the attempt must be aborted since the key may be another's.
    pub fn lost(&self) -> BoxFuture<'static, ()> {
        match &self.held {
            Some(held) => held.lost(),
            None => Box::pin(std::future::pending()),
        }
    }

    /// Stores the answer and frees the lock in one step. Cancel safe: see [`Held`].
    pub async fn commit(self, response: StoredResponse) -> Result<Ended, EndError> {
        self.end(End::Commit(response)).await
    }

    /// Frees the key. Only for what was provably not executed. Cancel safe.
    pub async fn release(self) -> Result<Ended, EndError> {
        self.end(End::Release).await
    }

    /// Leaves the key unknown. Cancel safe.
    pub async fn abandon(self, cause: Cause) -> Result<Ended, EndError> {
        self.end(End::Abandon(cause)).await
    }

    /// Takes the key again for the same attempt, after the lock was lost and its call was left to
    /// finish. Resolves when it is ours again, with another hold of the same token.
    ///
    /// Cancel safe: what is taken for nobody is left unknown.
    pub async fn adopt(mut self) -> Result<Self, EndError> {
        match self.held.take() {
            Some(held) => held.adopt(self.gate.clone()).await,
            None => Err(EndError::LockLost),
        }
    }

    fn end(mut self, end: End) -> BoxFuture<'static, Result<Ended, EndError>> {
        match self.held.take() {
            Some(held) => held.end(end),
            None => Box::pin(std::future::ready(Err(EndError::LockLost))),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        let end = if self.gate.is_passed() { End::Abandon(Cause::Stopped) } else { End::Release };
        // The ledger's own task carries the end on.
        drop(held.end(end));
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("token", &self.token)
            .field("attempt", &self.attempt)
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}
