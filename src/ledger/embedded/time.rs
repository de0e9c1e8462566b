//! The ledger's own time: it starts from the wall clock and is moved by boot time only.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::domain::{BootInstant, Clock, Timestamp};

/// Further apart, the wall clock and the ledger's time do not agree.
const MOST_DRIFT: Duration = Duration::from_mins(5);

/// For how long a process doubts the wall clock that it was started with. A machine that boots
/// without a battery for its clock has it set from the network well before.
const DOUBTED: Duration = Duration::from_hours(1);

/// Never runs backwards, not even over restarts, and never follows a step of the wall clock.
///
/// A start with a wall clock that is ahead must not end the retention of what is stored, so what
/// the clock says of the time before the start is believed only for as long as it goes on saying
/// so: see [`horizon`](Self::horizon). A clock that is behind can only prolong, by as much as it
/// is behind.
#[derive(Debug)]
pub(super) struct LedgerTime {
    clock: Clock,
    start: Timestamp,
    /// The time that the last process came to, which is past for sure.
    remembered: Timestamp,
    started_at: BootInstant,
    trusted: AtomicBool,
}

// === impl LedgerTime ===

impl LedgerTime {
    /// Starts at the wall clock's time, or at what is `remembered` where the wall clock is behind
    /// it. Without anything remembered there is nothing that could expire too early, and the start
    /// is not doubted.
    pub(super) fn starting(clock: Clock, remembered: Option<Timestamp>) -> Self {
        let wall = clock.wall();
        let start = remembered.map_or(wall, |remembered| remembered.max(wall));
        Self {
            start,
            remembered: remembered.unwrap_or(start),
            started_at: clock.boot(),
            trusted: AtomicBool::new(remembered.is_none()),
            clock,
        }
    }

    /// What is written down: the latest of the times that it may be.
    pub(super) fn now(&self) -> Timestamp {
        self.start.after(self.elapsed())
    }

    /// What expires by then is over. Never after [`now`](Self::now) and never before
    /// [`surely`](Self::surely); in between, where the wall clock is at this moment.
    pub(super) fn horizon(&self) -> Timestamp {
        self.clock.wall().min(self.now()).max(self.surely())
    }

    /// What is past even if this process was started with a wall clock that was ahead. The same as
    /// [`now`](Self::now) from the moment on when the clock has stood for an hour.
    pub(super) fn surely(&self) -> Timestamp {
        let elapsed = self.elapsed();
        if !self.trusted.load(Ordering::Relaxed) {
            if elapsed < DOUBTED || self.has_drifted() {
                return self.remembered.after(elapsed);
            }
            self.trusted.store(true, Ordering::Relaxed);
        }
        self.start.after(elapsed)
    }

    /// What the next process is to remember: never ahead of the wall clock, so that a time that is
    /// ahead once stands still until it is right.
    pub(super) fn mark(&self) -> Timestamp {
        self.surely().min(self.clock.wall())
    }

    /// How far the wall clock is from it, in either direction.
    pub(super) fn drift(&self) -> Duration {
        let (now, wall) = (self.now(), self.clock.wall());
        now.since(wall).max(wall.since(now))
    }

    /// Whether one of the two clocks is wrong.
    pub(super) fn has_drifted(&self) -> bool {
        self.drift() > MOST_DRIFT
    }

    fn elapsed(&self) -> Duration {
        self.clock.boot().since(self.started_at)
    }
}
