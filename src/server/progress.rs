//! How far a connection is with its current request, as its own task tells itself.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed},
};

use crate::domain::Tethered;

/// Shared by the parts of one connection: its wire, its service, and the body of its answer.
///
/// All of them run in the connection's task, one after the other, so relaxed order is enough.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    phase: AtomicU8,
    /// Whether the body of the answer has ended, though maybe not yet left.
    answered: AtomicBool,
    /// Whether the client does not take what there is to write.
    stalled: AtomicBool,
    /// Grows with each change of what is waited for.
    changes: AtomicU32,
    /// To whoever the connection was handed over to.
    tethered: Mutex<Option<Tethered>>,
}

/// Where a connection is in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// No byte of a request has come since the last answer left.
    Idle = 0,
    /// Some bytes of a request have come, not all of its head.
    Head = 1,
    /// The service has the request, or its answer has not left as a whole.
    Serving = 2,
    /// The request's framing is refused.
    Refused = 3,
    /// The connection belongs to whoever upgraded it.
    HandedOver = 4,
}

// === impl Progress ===

impl Progress {
    pub(super) fn phase(&self) -> Phase {
        match self.0.phase.load(Relaxed) {
            0 => Phase::Idle,
            1 => Phase::Head,
            2 => Phase::Serving,
            3 => Phase::Refused,
            _ => Phase::HandedOver,
        }
    }

    /// Whether an answer waits for the client to read.
    pub(super) fn is_stalled(&self) -> bool {
        self.0.stalled.load(Relaxed)
    }

    /// A number that differs whenever the phase changed, or a new stall began, in between.
    pub(super) fn changes(&self) -> u32 {
        self.0.changes.load(Relaxed)
    }

    /// Idle -> Head: bytes came.
    pub(super) fn bytes_came(&self) {
        if self.phase() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Idle, Head -> Serving: the head is complete.
    pub(super) fn request_began(&self) {
        self.0.answered.store(false, Relaxed);
        self.enter(Phase::Serving);
    }

    /// Head -> Refused.
    pub(super) fn refuse(&self) {
        self.enter(Phase::Refused);
    }

    /// Serving -> Handed over.
    pub(super) fn hand_over(&self, tethered: Option<Tethered>) {
        *self.0.tethered.lock().unwrap_or_else(PoisonError::into_inner) = tethered;
        self.enter(Phase::HandedOver);
    }

    /// Resolves when whoever has the connection is done with it.
    pub(super) async fn handed_back(&self) {
        let tethered = self.0.tethered.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut tethered) = tethered {
            tethered.released().await;
        }
    }

    /// The body of the answer has ended: what is still to leave is in hyper's buffer.
    pub(super) fn answer_ended(&self) {
        self.0.answered.store(true, Relaxed);
    }

    /// Serving -> Idle, if the answer has ended: hyper's buffer is empty.
    pub(super) fn flushed(&self) {
        if self.phase() == Phase::Serving && self.0.answered.load(Relaxed) {
            self.enter(Phase::Idle);
        }
    }

    /// Tells how a write went: each one that is taken ends a stall.
    pub(super) fn wrote(&self, is_taken: bool) {
        if is_taken == self.is_stalled() {
            self.0.stalled.store(!is_taken, Relaxed);
            self.changed();
        }
    }

    fn enter(&self, phase: Phase) {
        self.0.phase.store(phase as u8, Relaxed);
        self.changed();
    }

    fn changed(&self) {
        self.0.changes.store(self.changes().wrapping_add(1), Relaxed);
    }
}
