//! The only place that reads a clock: wall time for people, boot time for decisions.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use rustix::time::{ClockId, clock_gettime};

/// Wall time in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// A moment on a clock that never steps and that goes on counting while the machine is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(Duration);

/// Tells the time. Clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// Follows tokio's clock, so that a test in paused time moves both clocks at once.
    Tokio {
        start: tokio::time::Instant,
        wall: Timestamp,
    },
    /// Moved by hand, for tests that cannot pause tokio's clock.
    Hands(Hands),
}

/// Moves a [`Clock`] of a test; its wall time can be stepped while boot time goes on.
#[derive(Clone, Debug)]
pub struct Hands(Arc<Mutex<(Timestamp, BootInstant)>>);

// === impl Timestamp ===

impl Timestamp {
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Saturates at the end of time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// How long ago `earlier` was; zero if it was not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// As RFC 3339 writes it, in UTC, to the millisecond.
    pub fn to_rfc3339(self) -> String {
        // The last moment that has four digits for its year.
        let millis = self.0.min(253_402_300_799_999);
        let (day, moment) = (millis / 86_400_000, millis % 86_400_000);
        let (hour, minute, second) = (moment / 3_600_000, moment / 60_000 % 60, moment / 1000 % 60);
        // Years are counted from March on, so that a leap day is the last of its year; an era is
        // 400 years, after which the calendar repeats itself. 719,468 days lead from the first of
        // March of the year 0 to the epoch.
        let (era, day) = ((day + 719_468) / 146_097, (day + 719_468) % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let march_month = (5 * day + 2) / 153;
        let day = day - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = era * 400 + year + u64::from(month <= 2);
        format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
            millis % 1000
        )
    }

    pub fn to_system_time(self) -> SystemTime {
        // Years past the range of the platform's clock are all "far away".
        let last = Duration::from_secs(253_402_300_799);
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0).min(last)
    }
}

impl fmt::Display for Timestamp {
    /// As HTTP writes it (IMF-fixdate, RFC 9110 section 5.6.7).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        httpdate::HttpDate::from(self.to_system_time()).fmt(f)
    }
}

// === impl BootInstant ===

impl BootInstant {
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// How long ago `earlier` was; zero if it was not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

// === impl Clock ===

impl Clock {
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock for tests: `wall` now, and moved by tokio's clock only.
    pub fn following_tokio(wall: Timestamp) -> Self {
        Self(Source::Tokio { start: tokio::time::Instant::now(), wall })
    }

    /// A clock for tests that stands at `wall` until its hands are moved.
    pub fn by_hand(wall: Timestamp) -> (Self, Hands) {
        let hands = Hands(Arc::new(Mutex::new((wall, BootInstant(Duration::from_mins(1))))));
        (Self(Source::Hands(hands.clone())), hands)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads wall time")]
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                Timestamp(0).after(now.unwrap_or_default())
            }
            Source::Tokio { start, wall } => wall.after(start.elapsed()),
            Source::Hands(hands) => hands.read().0,
        }
    }

    pub fn boot(&self) -> BootInstant {
        match &self.0 {
            Source::System => {
                // CLOCK_BOOTTIME: a machine that was suspended has let time pass.
                let now = clock_gettime(ClockId::Boottime);
                let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
                let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
                BootInstant(Duration::new(seconds, nanos))
            }
            Source::Tokio { start, .. } => BootInstant(start.elapsed()),
            Source::Hands(hands) => hands.read().1,
        }
    }
}

// === impl Hands ===

impl Hands {
    /// Lets time pass, on both clocks.
    pub fn advance(&self, duration: Duration) {
        let (wall, boot) = self.read();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            (wall.after(duration), boot.after(duration));
    }

    /// Steps wall time alone, as an operator or NTP does.
    pub fn step_wall(&self, wall: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = wall;
    }

    fn read(&self) -> (Timestamp, BootInstant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn both_clocks_of_a_test_move_with_tokios() {
        let clock = Clock::following_tokio(Timestamp::from_millis(1_000));
        let boot = clock.boot();
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(clock.wall(), Timestamp::from_millis(3_000));
        assert_eq!(clock.boot().since(boot), Duration::from_secs(2));
        assert_eq!(boot.after(Duration::from_secs(2)), clock.boot());
    }

    #[test]
    fn the_system_clock_never_goes_back_and_is_past_2020() {
        let clock = Clock::system();
        let first = clock.boot();
        assert!(clock.boot() >= first);
        assert!(clock.wall() > Timestamp::from_millis(1_577_836_800_000));
    }

    #[test]
    fn time_that_has_not_come_is_no_time_ago() {
        let [early, late] = [1, 5].map(Timestamp::from_millis);
        assert_eq!(late.since(early), Duration::from_millis(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn the_end_of_time_is_neither_passed_nor_a_panic() {
        let end = Timestamp::from_millis(u64::MAX);
        assert_eq!(Timestamp::from_millis(1).after(Duration::MAX), end);
        assert_eq!(end.after(Duration::from_millis(1)), end);
        assert_eq!(end.to_string(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn a_timestamp_is_shown_as_http_writes_dates() {
        // The example of RFC 9110 section 5.6.7.
        let example = Timestamp::from_millis(784_111_777_999);
        assert_eq!(example.to_string(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn a_timestamp_is_written_as_rfc_3339_has_it() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (784_111_777_999, "1994-11-06T08:49:37.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_798_761_599_001, "2026-12-31T23:59:59.001Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_rfc3339(), text);
        }
    }
}
