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
    waits: Mutex<Option<(Instant, GaugeGuard)>>,
}

// === impl Queue ===

impl Queue {
    pub(super) fn new(call: &Arc<Call>) -> Arc<Self> {
        Arc::new(Self { call: Arc::clone(call), waits: Mutex::default() })
    }

    /// For how long the call stood in the queue, which it has left.
    pub(super) fn left(&self) -> Option<Duration> {
        self.waits().take().map(|(since, _waiter)| since.elapsed())
    }

    fn waits(&self) -> MutexGuard<'_, Option<(Instant, GaugeGuard)>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Queue {
    fn queued(&self, place: &LockPlace) {
        *self.waits() = Some((Instant::now(), self.call.metrics.waiter()));
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
