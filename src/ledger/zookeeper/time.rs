//! The servers' time, as far as a gateway can know it: from its own acknowledged writes.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::domain::{BootInstant, Clock, Timestamp};

/// Goes on by boot time from the newest write that a server has stamped. No wall clock of a
/// gateway has a part in it.
#[derive(Debug)]
pub(super) struct ServerTime {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    newest: Option<(Timestamp, BootInstant)>,
    /// Time that a test has let pass: the servers' clock cannot be moved.
    #[cfg(test)]
    passed: Vec<(Timestamp, Duration)>,
}

/// Further apart, one of two clocks is wrong.
pub(super) const MOST_DRIFT: Duration = Duration::from_mins(5);

/// Between writes that were stamped in one order and acknowledged in the other.
const OVERTAKING: Duration = Duration::from_secs(10);

// === impl ServerTime ===

impl ServerTime {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// A write was acknowledged just now, and the server stamped it so.
    pub(super) fn observe(&self, mtime: i64) {
        let (mtime, now) = (stamp(mtime), self.clock.boot());
        let mut state = self.lock();
        // Acknowledgements overtake each other by a little; by more, the leader's clock was set
        // back, or another server leads.
        let is_newer = |newest: Timestamp| newest <= mtime || newest.since(mtime) > OVERTAKING;
        if state.newest.is_none_or(|(newest, _)| is_newer(newest)) {
            state.newest = Some((mtime, now));
        }
    }

    /// Behind the servers by no more than the time between a write and its acknowledgement.
    pub(super) fn now(&self) -> Timestamp {
        let state = self.lock();
        state.now(self.real(&state))
    }

    /// What a server's stamp says.
    pub(super) fn at(&self, mtime: i64) -> Timestamp {
        self.lock().shown(stamp(mtime))
    }

    /// Whether it is `moment` or later, beyond doubt. While the leader's clock and this machine's
    /// differ by more than [`MOST_DRIFT`], one of them is wrong and nothing is over: that repeats
    /// an old answer, while an end that comes too early executes a payment again.
    pub(super) fn is_past(&self, moment: Timestamp) -> bool {
        self.now() >= moment && self.drift() <= MOST_DRIFT
    }

    /// How far this machine's wall clock is from the servers', in either direction.
    pub(super) fn drift(&self) -> Duration {
        let (wall, now) = (self.clock.wall(), self.real(&self.lock()));
        now.since(wall).max(wall.since(now))
    }

    fn real(&self, state: &State) -> Timestamp {
        let Some((newest, at)) = state.newest else { return self.clock.wall() };
        newest.after(self.clock.boot().since(at))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, by this machine's clock, which a test's servers share.
    #[cfg(test)]
    pub(super) fn pass(&self, duration: Duration) {
        self.lock().passed.push((self.clock.wall(), duration));
    }

    #[cfg(test)]
    pub(super) fn passed(&self) -> Vec<(Timestamp, Duration)> {
        self.lock().passed.clone()
    }

    #[cfg(test)]
    pub(super) fn set_passed(&self, passed: Vec<(Timestamp, Duration)>) {
        self.lock().passed = passed;
    }
}

// === impl State ===

#[cfg(not(test))]
#[expect(clippy::unused_self, reason = "only tests let time pass")]
impl State {
    fn now(&self, real: Timestamp) -> Timestamp {
        real
    }

    fn shown(&self, real: Timestamp) -> Timestamp {
        real
    }
}

#[cfg(test)]
impl State {
    fn now(&self, real: Timestamp) -> Timestamp {
        self.passed.iter().fold(real, |now, (_, duration)| now.after(*duration))
    }

    fn shown(&self, real: Timestamp) -> Timestamp {
        let passed = self.passed.iter().filter(|(at, _)| *at <= real);
        passed.fold(real, |shown, (_, duration)| shown.after(*duration))
    }
}

fn stamp(mtime: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(mtime).unwrap_or_default())
}
