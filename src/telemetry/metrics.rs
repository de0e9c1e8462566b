//! The only place that counts: handles made once, so that a request only increments.
//!
//! Make them after [`install`](super::install); a handle made before it counts nothing.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::StatusCode;
use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};

use super::{Outcome, names};
use crate::domain::Timestamp;

/// What is counted for one route. Clones share one set of handles.
#[derive(Clone)]
pub struct RouteMetrics(Arc<Route>);

struct Route {
    name: SharedString,
    requests: [Counter; Outcome::ALL.len()],
    /// Made when an outcome first happens: most routes never see most outcomes, and each
    /// histogram is two dozen lines of `/metrics`.
    durations: [OnceLock<Histogram>; Outcome::ALL.len()],
    /// Made when first used: routes without keys never do.
    phases: [OnceLock<Histogram>; PHASES],
    keys_in_flight: Gauge,
    waiters: Gauge,
}

/// What the ledger does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Taking the lock and writing the intent.
    Begin,
    /// Waiting for a live holder.
    Wait,
    /// Storing the end of the attempt.
    Commit,
}

/// One more of something until it is dropped.
#[must_use]
pub struct GaugeGuard(Gauge);

/// What is counted for one upstream. Clones share one set of handles.
#[derive(Clone)]
pub struct UpstreamMetrics(Arc<[Histogram; STATUS_CLASSES.len()]>);

/// Spans that no collector will ever see, by why.
#[derive(Clone)]
pub(super) struct SpansDropped {
    pub(super) queue_full: Counter,
    /// The collector did not take them.
    pub(super) collector: Counter,
}

/// A number of bytes that goes up and down.
#[derive(Clone)]
pub struct BytesGauge(Gauge);

/// What the ledger holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub in_progress: u64,
    pub completed: u64,
    pub unknown: u64,
    pub bytes: u64,
}

/// How a reload of the configuration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadResult {
    Applied,
    /// The old configuration stays.
    Refused,
}

/// The number of variants of [`Phase`].
const PHASES: usize = Phase::Commit as usize + 1;

/// The first is for calls that ended without a status.
const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Bytes of request and response bodies held at once.
pub fn buffered_bytes() -> BytesGauge {
    BytesGauge(gauge!(names::BUFFERED_BYTES))
}

/// Bytes of stored answers held in memory.
pub fn replay_cache_bytes() -> BytesGauge {
    BytesGauge(gauge!(names::REPLAY_CACHE_BYTES))
}

/// Tells what the ledger holds. Call every second or so; of gateways that share a ledger, on one.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a double; 2^53 records are far away")]
pub fn record_stored(stored: &Stored) {
    let Stored { in_progress, completed, unknown, bytes } = *stored;
    gauge!(names::KEYS_STORED, "state" => "in_progress").set(in_progress as f64);
    gauge!(names::KEYS_STORED, "state" => "completed").set(completed as f64);
    gauge!(names::KEYS_STORED, "state" => "unknown").set(unknown as f64);
    gauge!(names::KEYS_UNKNOWN).set(unknown as f64);
    gauge!(names::STORED_BYTES).set(bytes as f64);
}

/// Spans that are dropped rather than waited for.
pub(super) fn spans_dropped() -> SpansDropped {
    let counted = |reason| counter!(names::SPANS_DROPPED, "reason" => reason);
    SpansDropped { queue_full: counted("queue_full"), collector: counted("collector") }
}

/// Counts a reload of the configuration.
pub fn config_reloaded(result: ReloadResult) {
    counter!(names::CONFIG_RELOADS, "result" => result.label()).increment(1);
}

/// Counts a failure to accept a connection.
pub fn accept_failed() {
    counter!(names::ACCEPT_ERRORS).increment(1);
}

/// Counts an open connection of a client until the guard is dropped.
pub fn connection_opened() -> GaugeGuard {
    GaugeGuard::new(&gauge!(names::CONNECTIONS))
}

/// Counts a read of a record that this version cannot read; its key is refused.
pub fn record_unreadable() {
    counter!(names::RECORDS_UNREADABLE).increment(1);
}

/// Tells whether sweeping stands still since two clocks differ too much.
pub fn sweep_stopped(is_stopped: bool) {
    gauge!(names::SWEEP_STOPPED).set(f64::from(is_stopped));
}

/// Tells when the first certificate of the file that this field names ends; `None` is not known.
pub fn certificate_expires(file: &'static str, at: Option<Timestamp>) {
    let seconds = at.map_or(f64::NAN, |at| Duration::from_millis(at.as_millis()).as_secs_f64());
    gauge!(names::CERTIFICATE_EXPIRY, "file" => file).set(seconds);
}

/// Registers what has a value before anything happened.
pub(super) fn register() {
    gauge!(names::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    gauge!(names::CONNECTIONS).set(0.0);
    gauge!(names::BUFFERED_BYTES).set(0.0);
    gauge!(names::REPLAY_CACHE_BYTES).set(0.0);
    counter!(names::ACCEPT_ERRORS).absolute(0);
    counter!(names::RECORDS_UNREADABLE).absolute(0);
    sweep_stopped(false);
    for result in [ReloadResult::Applied, ReloadResult::Refused] {
        counter!(names::CONFIG_RELOADS, "result" => result.label()).absolute(0);
    }
    log_lines_dropped(0);
}

/// Tells how many log lines were dropped since the start.
pub(super) fn log_lines_dropped(lines: u64) {
    counter!(names::LOG_LINES_DROPPED).absolute(lines);
}

// === impl RouteMetrics ===

impl RouteMetrics {
    /// Handles for the route of this name from the configuration.
    pub fn new(route: &str) -> Self {
        let name = SharedString::from(route.to_owned());
        let requests = Outcome::ALL.map(|outcome| {
            counter!(names::REQUESTS, "route" => name.clone(), "outcome" => outcome.label())
        });
        Self(Arc::new(Route {
            requests,
            durations: [const { OnceLock::new() }; Outcome::ALL.len()],
            phases: [const { OnceLock::new() }; PHASES],
            keys_in_flight: gauge!(names::KEYS_IN_FLIGHT, "route" => name.clone()),
            waiters: gauge!(names::WAITERS, "route" => name.clone()),
            name,
        }))
    }

    /// Handles for requests that matched no route. Their label is empty, which no route's name is.
    pub fn unmatched() -> Self {
        Self::new("")
    }

    /// Counts a request that ended, `duration` after its head arrived.
    pub fn request_ended(&self, outcome: Outcome, duration: Duration) {
        let Route { name, requests, durations, .. } = &*self.0;
        requests[outcome.index()].increment(1);
        let histogram = durations[outcome.index()].get_or_init(|| {
            let outcome = outcome.label();
            histogram!(names::REQUEST_DURATION, "route" => name.clone(), "outcome" => outcome)
        });
        histogram.record(duration);
    }

    /// Records what the ledger added to a request.
    pub fn ledger_phase(&self, phase: Phase, duration: Duration) {
        let Route { name, phases, .. } = &*self.0;
        let histogram = phases[phase as usize].get_or_init(|| {
            histogram!(names::LEDGER_DURATION, "route" => name.clone(), "phase" => phase.label())
        });
        histogram.record(duration);
    }

    /// Counts a key that is executed until the guard is dropped.
    pub fn key_in_flight(&self) -> GaugeGuard {
        GaugeGuard::new(&self.0.keys_in_flight)
    }

    /// Counts a request that waits for another's key until the guard is dropped.
    pub fn waiter(&self) -> GaugeGuard {
        GaugeGuard::new(&self.0.waiters)
    }
}

impl fmt::Debug for RouteMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RouteMetrics").field(&self.0.name).finish()
    }
}

// === impl Phase ===

impl Phase {
    const fn label(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Wait => "wait",
            Self::Commit => "commit",
        }
    }
}

// === impl GaugeGuard ===

impl GaugeGuard {
    fn new(gauge: &Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl fmt::Debug for GaugeGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GaugeGuard")
    }
}

// === impl UpstreamMetrics ===

impl UpstreamMetrics {
    /// Handles for the upstream of this name from the configuration.
    pub fn new(upstream: &str) -> Self {
        let name = SharedString::from(upstream.to_owned());
        Self(Arc::new(STATUS_CLASSES.map(|class| {
            histogram!(
                names::UPSTREAM_DURATION,
                "upstream" => name.clone(),
                "status_class" => class,
            )
        })))
    }

    /// Records a call, from connect to its end; `None` when no status came back.
    pub fn call_ended(&self, status: Option<StatusCode>, duration: Duration) {
        let class = status.map_or(0, |status| usize::from(status.as_u16() / 100));
        // HTTP allows statuses up to 999 (RFC 9110 section 15) and says to take them for 5xx.
        self.0[class.min(STATUS_CLASSES.len() - 1)].record(duration);
    }
}

impl fmt::Debug for UpstreamMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamMetrics")
    }
}

// === impl BytesGauge ===

impl BytesGauge {
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a double; 2^53 bytes are far away")]
    pub fn set(&self, bytes: u64) {
        self.0.set(bytes as f64);
    }
}

impl fmt::Debug for BytesGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BytesGauge")
    }
}

// === impl ReloadResult ===

impl ReloadResult {
    const fn label(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Refused => "refused",
        }
    }
}
