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
    /// The writer sleeps until so many operations wait. Nobody else pays for waking it.
    awaited: Option<usize>,
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

/// How long a first operation waits for company.
///
/// Those who were just answered tend to come back at once; without a pause the first of them would
/// have a transaction, and an fsync, almost for itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gather {
    /// As many operations as are worth waiting for.
    pub(super) operations: usize,
    pub(super) at_most: Duration,
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
    pub(super) fn take(&self, patience: Duration, gather: Gather) -> Taken {
        let mut state = self.wait(self.state(), patience, 1);
        if !state.operations.is_empty() {
            state = self.wait(state, gather.at_most, gather.operations);
        }
        Taken {
            operations: mem::take(&mut state.operations),
            suspect: mem::take(&mut state.suspect),
            closing: state.stage != Stage::Open,
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state().stage != Stage::Open
    }

    pub(super) fn waiting(&self) -> usize {
        self.state().operations.len()
    }

    /// All that waits, without waiting. For the writer when it is about to open the file again,
    /// so nobody needs to ask for that any more.
    pub(super) fn drain(&self) -> Vec<Operation> {
        let mut state = self.state();
        state.suspect = false;
        mem::take(&mut state.operations)
    }

    /// Takes nothing any more from here on, if nothing is left to do.
    pub(super) fn seal(&self) -> bool {
        let mut state = self.state();
        if state.operations.is_empty() {
            state.stage = Stage::Sealed;
        }
        state.stage == Stage::Sealed
    }

    /// Sleeps until `operations` wait or something else is to be done, and no longer than
    /// `patience`.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: Duration,
        operations: usize,
    ) -> MutexGuard<'a, State> {
        if state.is_ready(operations) {
            return state;
        }
        state.awaited = Some(operations);
        let waited = self.arrived.wait_timeout_while(state, patience, |s| !s.is_ready(operations));
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.awaited = None;
        state
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let awaited = state.awaited.is_some_and(|operations| state.is_ready(operations));
        if awaited {
            state.awaited = None;
        }
        drop(state);
        if awaited {
            self.arrived.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn is_ready(&self, operations: usize) -> bool {
        self.operations.len() >= operations || self.suspect || self.stage != Stage::Open
    }
}
