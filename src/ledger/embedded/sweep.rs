//! Deletes what has expired, a little at a time and by the ledger's own time.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{core::Core, settings::Sweep, store::StoreError};
use crate::{domain::Timestamp, telemetry};

#[derive(Debug)]
pub(super) struct Sweeper {
    settings: Sweep,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next_at: Timestamp,
    stopped: bool,
}

// === impl Sweeper ===

impl Sweeper {
    pub(super) fn new(settings: Sweep, now: Timestamp) -> Self {
        let next_at = now.after(settings.interval);
        Self { settings, state: Mutex::new(State { next_at, stopped: false }) }
    }

    pub(super) fn due_in(&self, now: Timestamp) -> Duration {
        self.state().next_at.since(now)
    }

    /// One batch, if it is due.
    pub(super) fn step(&self, core: &Core) -> Result<(), StoreError> {
        let now = core.now();
        let mut state = self.state();
        if now < state.next_at {
            return Ok(());
        }
        state.next_at = now.after(self.settings.interval);
        // One of the two clocks is wrong: nothing is deleted on its word.
        let stopped = core.time().has_drifted();
        if stopped != state.stopped {
            state.stopped = stopped;
            if stopped {
                let drift = core.time().drift();
                tracing::warn!(?drift, "wall clock left the ledger's time, sweeping stopped");
            } else {
                tracing::warn!("wall clock is back at the ledger's time, sweeping goes on");
            }
            telemetry::sweep_stopped(stopped);
        }
        let (until, batch) = (core.time().surely(), self.settings.batch);
        if !stopped && core.store.sweep(until, core.mark(), batch)? == batch {
            state.next_at = now.after(self.settings.pause);
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
