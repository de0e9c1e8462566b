//! The access log: one event per request.

use std::time::Duration;

use http::{Method, StatusCode};
use tracing::Level;

use super::Outcome;

/// One request that ended, for the access log.
///
/// Never give it a query, a key or a scope value: the path is all it may say of the target.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    pub method: &'a Method,
    /// Without query.
    pub path: &'a str,
    /// `None` where the request ended without an answer: its client left, or it was cut off.
    pub status: Option<StatusCode>,
    pub outcome: Outcome,
    pub duration: Duration,
    pub route: Option<&'a str>,
    pub upstream: Option<&'a str>,
    pub request_id: &'a str,
}

/// Lets the access log be filtered on its own.
const TARGET: &str = "access";

// === impl Access ===

impl Access<'_> {
    /// Whether [`log`](Self::log) would write anything. Costs a load or two.
    pub fn is_enabled() -> bool {
        tracing::enabled!(target: TARGET, Level::INFO)
    }

    /// Writes the event at level info.
    pub fn log(&self) {
        tracing::info!(
            target: TARGET,
            method = self.method.as_str(),
            path = self.path,
            status = self.status.map(|status| status.as_u16()),
            outcome = self.outcome.label(),
            duration = self.duration.as_secs_f64(),
            route = self.route,
            upstream = self.upstream,
            request_id = self.request_id,
            "request ended"
        );
    }
}
