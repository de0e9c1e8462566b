//! Decides for each keyed request: execute, join, wait, replay or refuse.
//!
//! A request meets three questions, cheapest first: is the answer in the [`cache`]; is the same
//! key in flight in this process ([`flight`]); what does the ledger say ([`lead`]). Whoever asks
//! the ledger does so in a task of its own, which outlives its client: a caller that hangs up
//! cancels nothing that its retry will ask for.

mod cache;
mod flight;
mod judge;
mod lead;
mod permit;
mod policy;
#[cfg(test)]
mod tests;
mod verdict;

use std::{fmt, sync::Arc, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{cache::ReplayCache, flight::Flights};
pub use self::{
    permit::{Full, Permit, Permits},
    policy::{Disposition, Policy, Responses},
    verdict::{Attempt, Call, Execution, Refusal, Verdict},
};
use crate::{domain::Clock, ledger::Ledger};

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
    limits: Limits,
    /// Every attempt from before it asks the ledger until its end is stored.
    attempts: TaskTracker,
    /// Ends what a drain did not wait for.
    stopping: CancellationToken,
}

// === impl Arbiter ===

impl Arbiter {
    pub fn new(ledger: Arc<dyn Ledger>, limits: Limits, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            ledger,
            flights: Arc::default(),
            cache: ReplayCache::new(limits.replay_cache, clock),
            limits,
            attempts: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    /// Attempts that run now, those whose client has left included.
    pub fn in_flight(&self) -> usize {
        self.0.attempts.len()
    }

    /// Bytes held by the replay cache.
    pub fn cached_bytes(&self) -> u64 {
        self.0.cache.weight()
    }

    /// Waits up to `timeout` for running attempts to end and be stored; aborts the rest, whose
    /// keys become *unknown* if the upstream may have seen them. Returns how many were aborted.
    ///
    /// The caller stops admitting requests first.
    pub async fn drain(&self, timeout: Duration) -> usize {
        let Inner { attempts, stopping, .. } = &*self.0;
        attempts.close();
        if tokio::time::timeout(timeout, attempts.wait()).await.is_ok() {
            return 0;
        }
        let left = attempts.len();
        stopping.cancel();
        attempts.wait().await;
        left
    }
}

impl fmt::Debug for Arbiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arbiter")
            .field("ledger", &self.0.ledger)
            .field("limits", &self.0.limits)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
