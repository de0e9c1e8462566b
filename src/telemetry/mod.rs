//! The name of every metric and log event, and the only code that counts.
//!
//! Metrics go through handles that are made once per route or upstream, after [`install`]: a
//! request only increments. Labels are closed enums and names from the configuration, so nothing a
//! client sends becomes a label. Keys, paths and callers never do.

mod access;
mod audit;
mod chain;
mod describe;
pub mod ensemble;
mod lock_event;
pub mod log;
mod metrics;
pub mod names;
mod outcome;
mod process;
mod recorder;
#[cfg(test)]
mod tests;
pub mod trace;

pub use self::{
    access::Access,
    audit::Audit,
    chain::Chain,
    lock_event::{KeyNaming, LockEvent, LoggedKey, SessionId, Transition},
    metrics::{
        BytesGauge, GaugeGuard, Phase, ReloadResult, RouteMetrics, Stored, UpstreamMetrics,
        accept_failed, buffered_bytes, certificate_expires, config_reloaded, connection_opened,
        record_stored, record_unreadable, replay_cache_bytes, sweep_stopped,
    },
    outcome::Outcome,
    recorder::{InstallError, Metrics, install},
};
