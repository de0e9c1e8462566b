//! What stands behind a ledger, for the operator.

use std::time::Duration;

/// What stands behind a ledger.
#[derive(Clone, Debug)]
pub struct Ensemble {
    /// As `ledger.kind` has it.
    pub kind: &'static str,
    /// Where the keys are kept, for a person.
    pub place: String,
    /// Why the ledger cannot be used at the moment.
    pub trouble: Option<String>,
    /// None for a ledger without servers.
    pub servers: Vec<Server>,
    /// This gateway's own; none for a ledger without them.
    pub sessions: Vec<SessionView>,
}

/// What a server said about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `host:port`, for clients.
    pub address: String,
    /// `leader`, `follower`, `observer`, `standalone` or `read-only`, if it told.
    pub mode: Option<String>,
    /// Like `3.9.3`, if it told.
    pub version: Option<String>,
    /// From the first packet to its whole answer, if there was one.
    pub round_trip: Option<Duration>,
    /// Why it does not serve, or is not known to, and what to do about it.
    pub trouble: Option<String>,
}

/// A session of this gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionView {
    pub slot: usize,
    pub id: i64,
    /// As the servers gave it.
    pub timeout: Duration,
    /// For how long its locks are surely ours; zero if it is lost.
    pub lease: Duration,
    pub is_connected: bool,
    /// Attempts that hold a lock in it, or wait for one.
    pub attempts: usize,
}

// === impl Server ===

impl Server {
    pub fn serves(&self) -> bool {
        self.mode.is_some() && self.trouble.is_none()
    }
}
