//! A call's place in the ledger's queue: logged, and told apart from what the ledger itself takes.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::Call;
use crate::{
    ledger::{LockPlace, Observer},
    telemetry::{GaugeGuard, Transition},
};

/// What the ledger tells of a call before its lock is acquired.
pub(super) struct Queue {
    call: Arc<Call>,
    waits: Mutex<Option<Wait>>,
}

/// A place that was taken.
struct Wait {
    since: Instant,
    place: LockPlace,
    _waiter: GaugeGuard,
}

// === impl Queue ===

impl Queue {
    pub(super) fn new(call: &Arc<Call>) -> Arc<Self> {
        Arc::new(Self { call: Arc::clone(call), waits: Mutex::default() })
    }

    /// For how long the call stood in the queue, which it has left, and where.
    pub(super) fn left(&self) -> Option<(Duration, LockPlace)> {
        self.waits().take().map(|wait| (wait.since.elapsed(), wait.place))
    }

    fn waits(&self) -> MutexGuard<'_, Option<Wait>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Queue {
    fn queued(&self, place: &LockPlace) {
        *self.waits() = Some(Wait {
            since: Instant::now(),
            place: place.clone(),
            _waiter: self.call.metrics.waiter(),
        });
        self.call.log(Transition::Created, Some(place), None);
    }

    fn woken(&self, place: &LockPlace) {
        self.call.log(Transition::WatchFired, Some(place), None);
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waits", &self.waits().is_some()).finish_non_exhaustive()
    }
}
