//! Decides for each keyed request: execute, join, wait, replay or refuse.
//!
//! A request meets three questions, cheapest first: is the answer in the [`cache`]; is the same
//! key in flight in this process ([`flight`]); what does the ledger say ([`lead`]). Whoever asks
//! the ledger does so in a task of its own, which outlives its client: a caller that hangs up
//! cancels nothing that its retry will ask for.

mod budget;
mod cache;
mod flight;
mod judge;
mod lead;
mod permit;
mod policy;
mod queue;
#[cfg(test)]
mod tests;
mod verdict;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    budget::{Budget, Exhausted, Reserved},
    permit::{Full, Permit, Permits},
    policy::{Disposition, Policy, Responses},
    verdict::{Attempt, Call, Execution, Refusal, Verdict},
};
use self::{cache::ReplayCache, flight::Flights};
use crate::{
    domain::{Clock, KeyId},
    ledger::Ledger,
};

/// Bounds of the [`Arbiter`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many requests may wait in this process for one key; the next one is refused.
    pub max_waiters_per_key: usize,
    /// Bytes of completed records kept in memory; 0 keeps none.
    pub replay_cache: u64,
}

/// Runs each key at most once. Clones are the same arbiter.
#[derive(Clone)]
pub struct Arbiter(Arc<Inner>);

struct Inner {
    ledger: Arc<dyn Ledger>,
    flights: Arc<Flights>,
    cache: ReplayCache,
    max_waiters_per_key: AtomicUsize,
    /// Every attempt from before it asks the ledger until its end is stored.
    attempts: TaskTracker,
    /// Ends attempts before their time.
    stopping: CancellationToken,
}

// === impl Arbiter ===

impl Arbiter {
    pub fn new(ledger: Arc<dyn Ledger>, limits: Limits, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            ledger,
            flights: Arc::default(),
            cache: ReplayCache::new(limits.replay_cache, clock),
            max_waiters_per_key: AtomicUsize::new(limits.max_waiters_per_key),
            attempts: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    /// Changes the bounds for what comes; who waits goes on waiting.
    pub fn resize(&self, limits: Limits) {
        self.0.max_waiters_per_key.store(limits.max_waiters_per_key, Ordering::Relaxed);
        self.0.cache.resize(limits.replay_cache);
    }

    /// Attempts that run now, those whose client has left included.
    pub fn in_flight(&self) -> usize {
        self.0.attempts.len()
    }

    /// Requests of this process that wait for the attempt under way of `key`.
    pub fn waiters(&self, key: &KeyId) -> usize {
        self.0.flights.followers(key)
    }

    /// Bytes held by the replay cache.
    pub fn cached_bytes(&self) -> u64 {
        self.0.cache.weight()
    }

    /// Waits until no attempt runs: every end is stored, or given up. Cancel safe.
    ///
    /// The caller stops admitting requests first, or there may be no such moment.
    pub async fn idle(&self) {
        self.0.attempts.close();
        self.0.attempts.wait().await;
    }

    /// Aborts what runs: a key that the upstream may have seen becomes *unknown*, another is
    /// freed. What comes later is refused. Returns how many attempts ran.
    pub fn abort(&self) -> usize {
        self.0.stopping.cancel();
        self.in_flight()
    }
}

impl fmt::Debug for Arbiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arbiter")
            .field("ledger", &self.0.ledger)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
