//! Numbers of the process itself, under the names that every Prometheus client library uses.
//!
//! Written as text of their own: CPU seconds are a counter with a fraction, which the recorder's
//! counters cannot hold.

use std::{fmt::Write, fs};

use rustix::time::{ClockId, clock_gettime};

use super::names;
use crate::domain::{Clock, Timestamp};

/// Tells of this process. Make it at the start: that moment is the start time it tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    started_at: Timestamp,
}

// === impl Process ===

impl Process {
    pub(super) fn new() -> Self {
        Self { started_at: Clock::system().wall() }
    }

    /// Appends every number that this platform gives; the others are left out.
    pub(super) fn render(self, text: &mut String) {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        sample(
            text,
            names::PROCESS_CPU,
            "counter",
            "User and system CPU time spent.",
            format_args!("{}.{:09}", cpu.tv_sec, cpu.tv_nsec),
        );
        let started_at = self.started_at.as_millis();
        sample(
            text,
            names::PROCESS_START_TIME,
            "gauge",
            "Start time since the Unix epoch.",
            format_args!("{}.{:03}", started_at / 1000, started_at % 1000),
        );

        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let open_fds = fs::read_dir("/proc/self/fd").ok().map(|entries| {
            // The listing itself holds one descriptor open.
            (entries.count() as u64).saturating_sub(1)
        });
        let gauges = [
            (
                names::PROCESS_RESIDENT_MEMORY,
                "Resident memory.",
                number(&status, "VmRSS:").map(|kibibytes| kibibytes * 1024),
            ),
            (
                names::PROCESS_VIRTUAL_MEMORY,
                "Virtual memory.",
                number(&status, "VmSize:").map(|kibibytes| kibibytes * 1024),
            ),
            (names::PROCESS_OPEN_FDS, "Open file descriptors.", open_fds),
            (
                names::PROCESS_MAX_FDS,
                "Most file descriptors that may be open.",
                number(&limits, "Max open files"),
            ),
            (names::PROCESS_THREADS, "Threads.", number(&status, "Threads:")),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                sample(text, name, "gauge", help, format_args!("{value}"));
            }
        }
    }
}

/// The first number on the line that starts with `label`.
fn number(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_whitespace().next()?.parse().ok()
}

fn sample(text: &mut String, name: &str, kind: &str, help: &str, value: std::fmt::Arguments<'_>) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
        .expect("a string takes any text");
}
