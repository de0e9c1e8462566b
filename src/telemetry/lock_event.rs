//! The log of a key's lock: one event per transition, with the fields that runbooks search for.

use std::fmt;

use crate::domain::{FencingToken, IdempotencyKey, KeyId};

/// A transition of one key's lock.
#[derive(Clone, Copy, Debug)]
pub struct LockEvent<'a> {
    pub event: Transition,
    pub key: LoggedKey<'a>,
    /// Absent for the embedded ledger.
    pub znode_path: Option<&'a str>,
    /// Absent for the embedded ledger.
    pub session_id: Option<SessionId>,
    pub route: &'a str,
    pub request_id: &'a str,
    /// Absent until the lock is acquired.
    pub attempt: Option<u32>,
    /// Absent until the lock is acquired.
    pub fencing_token: Option<FencingToken>,
    pub gateway: &'a str,
}

/// What happened to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// A place in the queue for the lock was taken.
    Created,
    /// The lock is ours.
    Acquired,
    /// The one before us in the queue is gone.
    WatchFired,
    /// The lock was let go.
    Released,
    /// The session ended, and with it the lock.
    SessionExpired,
}

/// How keys are named in the log (`log.keys`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyNaming {
    /// As the client wrote it.
    #[default]
    Plain,
    /// By its key id.
    Hashed,
}

/// A key as the log may show it.
#[derive(Clone, Copy)]
pub struct LoggedKey<'a>(Name<'a>);

#[derive(Clone, Copy)]
enum Name<'a> {
    Plain(&'a str),
    Hashed(KeyId),
}

/// The id of a session with the ensemble, shown as the servers print it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionId(pub i64);

/// Lets the transitions be filtered on their own.
const TARGET: &str = "lock";

// === impl LockEvent ===

impl LockEvent<'_> {
    /// Writes the event at level info.
    pub fn log(&self) {
        tracing::info!(
            target: TARGET,
            event = self.event.label(),
            idempotency_key = %self.key,
            znode_path = self.znode_path,
            session_id = self.session_id.map(tracing::field::display),
            route = self.route,
            request_id = self.request_id,
            attempt = self.attempt,
            fencing_token = self.fencing_token.map(FencingToken::get),
            gateway = self.gateway,
            "lock changed"
        );
    }
}

// === impl Transition ===

impl Transition {
    const fn label(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Acquired => "acquired",
            Self::WatchFired => "watch_fired",
            Self::Released => "released",
            Self::SessionExpired => "session_expired",
        }
    }
}

// === impl KeyNaming ===

impl KeyNaming {
    /// The name of this key in the log.
    pub fn name<'a>(self, key: &'a IdempotencyKey, id: &KeyId) -> LoggedKey<'a> {
        match self {
            Self::Plain => LoggedKey(Name::Plain(key.as_str())),
            Self::Hashed => LoggedKey::hashed(id),
        }
    }
}

// === impl LoggedKey ===

impl LoggedKey<'_> {
    /// The name for one who knows the key id only.
    pub fn hashed(id: &KeyId) -> Self {
        Self(Name::Hashed(*id))
    }
}

impl fmt::Display for LoggedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Name::Plain(key) => f.write_str(key),
            Name::Hashed(id) => id.fmt(f),
        }
    }
}

impl fmt::Debug for LoggedKey<'_> {
    /// Keys can carry order numbers, so `Debug` does not show them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoggedKey")
    }
}

// === impl SessionId ===

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}
