//! The ledger's own time: it starts from the wall clock and is moved by boot time only.

use std::time::Duration;

use crate::domain::{BootInstant, Clock, Timestamp};

/// Never runs backwards, not even over restarts, and never follows a step of the wall clock.
#[derive(Clone, Debug)]
pub(super) struct LedgerTime {
    clock: Clock,
    start: Timestamp,
    started_at: BootInstant,
}

// === impl LedgerTime ===

impl LedgerTime {
    /// Starts at the wall clock's time, or at `at_least` where the wall clock is behind it.
    pub(super) fn starting(clock: Clock, at_least: Timestamp) -> Self {
        let start = clock.wall().max(at_least);
        let started_at = clock.boot();
        Self { clock, start, started_at }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.start.after(self.clock.boot().since(self.started_at))
    }

    /// How far the wall clock is from it, in either direction.
    pub(super) fn drift(&self) -> Duration {
        let (now, wall) = (self.now(), self.clock.wall());
        now.since(wall).max(wall.since(now))
    }
}
