//! Operations that wait for the writer. At most one per key: the table of locks sees to that.

use std::{
    mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::operation::Operation;

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    operations: Vec<Operation>,
    /// A reader met an error: the file has to be opened again.
    suspect: bool,
    stage: Stage,
    /// The writer sleeps. Nobody else pays for waking it.
    idle: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// What arrives is still done.
    Closing,
    /// What arrives is dropped.
    Sealed,
}

/// What there is to do for the writer.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) operations: Vec<Operation>,
    pub(super) suspect: bool,
    pub(super) closing: bool,
}

// === impl Queue ===

impl Queue {
    /// Drops the operation once the queue is sealed.
    pub(super) fn push(&self, operation: Operation) {
        let mut state = self.state();
        if state.stage == Stage::Sealed {
            // Its drop frees a claim, or even ends a hold: not under this lock.
            drop(state);
            drop(operation);
            return;
        }
        state.operations.push(operation);
        self.wake(state);
    }

    pub(super) fn suspect(&self) {
        let mut state = self.state();
        state.suspect = true;
        self.wake(state);
    }

    /// What is in the queue is still done, and what arrives meanwhile.
    pub(super) fn close(&self) {
        let mut state = self.state();
        if state.stage == Stage::Open {
            state.stage = Stage::Closing;
        }
        self.wake(state);
    }

    /// All that waits, as one batch. Comes back with nothing after `patience`, or when closing.
    pub(super) fn take(&self, patience: Duration) -> Taken {
        let mut state = self.state();
        if !state.has_work() {
            state.idle = true;
            let waited = self.arrived.wait_timeout_while(state, patience, |s| !s.has_work());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle = false;
        }
        Taken {
            operations: mem::take(&mut state.operations),
            suspect: mem::take(&mut state.suspect),
            closing: state.stage != Stage::Open,
        }
    }

    /// All that waits, without waiting.
    pub(super) fn drain(&self) -> Vec<Operation> {
        mem::take(&mut self.state().operations)
    }

    /// Takes nothing any more from here on, if nothing is left to do.
    pub(super) fn seal(&self) -> bool {
        let mut state = self.state();
        if state.operations.is_empty() {
            state.stage = Stage::Sealed;
        }
        state.stage == Stage::Sealed
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let idle = mem::take(&mut state.idle);
        drop(state);
        if idle {
            self.arrived.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn has_work(&self) -> bool {
        !self.operations.is_empty() || self.suspect || self.stage != Stage::Open
    }
}
