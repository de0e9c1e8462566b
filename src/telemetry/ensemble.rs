//! What is counted about the ensemble. The names are the runbooks' own, and exist only with a
//! ledger that has one.

use std::{fmt, time::Duration};

use metrics::{Gauge, Histogram, counter, gauge, histogram};

use super::names;

/// What a request of the ensemble is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    GetChildren,
    Exists,
    GetData,
    Delete,
    /// Never asked for: what must be fresh awaits an acknowledged write, which proves more.
    Sync,
    MultiBegin,
    MultiCommit,
    MultiRelease,
    MultiTakeover,
    MultiExpire,
    Heartbeat,
}

/// How a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    Connected,
    /// Disconnected, and its lease runs.
    Suspended,
    Lost,
}

/// Why a session was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLoss {
    /// The servers ended it.
    Expired,
    /// Its lease is over.
    Lease,
    /// The servers do not accept the credentials.
    Auth,
}

/// What is counted for one slot of sessions.
#[derive(Clone)]
pub struct SessionMetrics {
    lease: Gauge,
    states: [Gauge; SessionState::ALL.len()],
}

/// The latency of every operation. Clones share one set of handles.
#[derive(Clone)]
pub struct OperationMetrics(std::sync::Arc<[Histogram; Operation::ALL.len()]>);

/// A lock node of ours, counted until it is dropped.
#[must_use]
pub struct LiveLock(Gauge);

/// A watch fired.
pub fn watch_notified(root: &str) {
    counter!(names::ZK_WATCH_NOTIFICATIONS, "prefix" => root.to_owned()).increment(1);
}

/// A session was lost.
pub fn session_lost(loss: SessionLoss) {
    counter!(names::ZK_SESSION_EXPIRED, "reason" => loss.label()).increment(1);
}

/// A lock of ours was let go. Who waits for it on another gateway is not known without a request.
pub fn lock_released(route: &str) {
    counter!(names::ZK_LOCK_RELEASES, "route" => route.to_owned(), "waiters" => "no").increment(1);
}

/// A lock was let go, and a request of ours was the next in its queue.
pub fn lock_inherited(route: &str) {
    counter!(names::ZK_LOCK_RELEASES, "route" => route.to_owned(), "waiters" => "yes").increment(1);
}

/// So many lock nodes were seen under one key.
pub fn locks_of_a_key(route: &str, most: f64) {
    gauge!(names::ZK_EPHEMERAL_NODES_PER_KEY, "route" => route.to_owned()).set(most);
}

/// Servers that serve, and all of them.
pub fn ensemble(serving: u32, all: u32) {
    gauge!(names::ZK_QUORUM_SIZE).set(f64::from(serving));
    gauge!(names::ZK_ENSEMBLE_SIZE).set(f64::from(all));
}

/// Registers what is counted from zero: of a series that begins with its first event, no rate and
/// no alert sees that event.
pub fn register(root: &str) {
    counter!(names::ZK_WATCH_NOTIFICATIONS, "prefix" => root.to_owned()).absolute(0);
    for loss in [SessionLoss::Expired, SessionLoss::Lease, SessionLoss::Auth] {
        counter!(names::ZK_SESSION_EXPIRED, "reason" => loss.label()).absolute(0);
    }
}

// === impl Operation ===

impl Operation {
    pub const ALL: [Self; 12] = [
        Self::Create,
        Self::GetChildren,
        Self::Exists,
        Self::GetData,
        Self::Delete,
        Self::Sync,
        Self::MultiBegin,
        Self::MultiCommit,
        Self::MultiRelease,
        Self::MultiTakeover,
        Self::MultiExpire,
        Self::Heartbeat,
    ];

    const fn label(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::GetChildren => "getChildren",
            Self::Exists => "exists",
            Self::GetData => "getData",
            Self::Delete => "delete",
            Self::Sync => "sync",
            Self::MultiBegin => "multi_begin",
            Self::MultiCommit => "multi_commit",
            Self::MultiRelease => "multi_release",
            Self::MultiTakeover => "multi_takeover",
            Self::MultiExpire => "multi_expire",
            Self::Heartbeat => "heartbeat",
        }
    }
}

// === impl OperationMetrics ===

impl OperationMetrics {
    pub fn new() -> Self {
        Self(std::sync::Arc::new(Operation::ALL.map(
            |operation| histogram!(names::ZK_OPERATION_LATENCY, "operation" => operation.label()),
        )))
    }

    pub fn answered(&self, operation: Operation, after: Duration) {
        self.0[operation as usize].record(after.as_secs_f64() * 1000.0);
    }
}

impl Default for OperationMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OperationMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperationMetrics")
    }
}

// === impl SessionState ===

impl SessionState {
    const ALL: [Self; 3] = [Self::Connected, Self::Suspended, Self::Lost];

    const fn label(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Suspended => "suspended",
            Self::Lost => "lost",
        }
    }
}

// === impl SessionLoss ===

impl SessionLoss {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Lease => "lease",
            Self::Auth => "auth",
        }
    }
}

// === impl SessionMetrics ===

impl SessionMetrics {
    pub fn new(slot: usize) -> Self {
        let slot = slot.to_string();
        let state = |state: SessionState| {
            let labels = [("session", slot.clone()), ("state", state.label().to_owned())];
            gauge!(names::ZK_SESSION_STATE, &labels)
        };
        Self {
            lease: gauge!(names::ZK_LEASE_REMAINING, "session" => slot.clone()),
            states: SessionState::ALL.map(state),
        }
    }

    pub fn lease(&self, remaining: Duration) {
        self.lease.set(remaining.as_secs_f64());
    }

    pub fn state(&self, now: SessionState) {
        for (state, gauge) in SessionState::ALL.into_iter().zip(&self.states) {
            gauge.set(f64::from(state == now));
        }
    }
}

impl fmt::Debug for SessionMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionMetrics")
    }
}

// === impl LiveLock ===

impl LiveLock {
    pub fn new(route: &str) -> Self {
        let gauge = gauge!(names::ZK_EPHEMERAL_NODES, "route" => route.to_owned());
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for LiveLock {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl fmt::Debug for LiveLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveLock")
    }
}
