//! What is written before a request is forwarded.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{FencingToken, Fingerprint, Timestamp, TracePoint};

/// Names one attempt, in the record and in the name of its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttemptId(Uuid);

/// Who made an attempt, for the person who later asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The route's name from the configuration.
    pub route: Arc<str>,
    /// The gateway's id with its random suffix.
    pub gateway: Arc<str>,
    pub request_id: Arc<str>,
    /// The span of the request that made it, where it is recorded.
    pub trace: Option<TracePoint>,
}

/// For how long a key is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// From the commit on.
    pub completed: Duration,
    /// From the end of the attempt on; `None` keeps it until an operator decides.
    pub unknown: Option<Duration>,
}

/// The promise to run one attempt; durable before the first byte goes upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    pub attempt_id: AttemptId,
    /// 1 is the first.
    pub attempt: u32,
    pub token: FencingToken,
    /// Whether an *earlier* attempt of this record may have reached the upstream. Such a key is
    /// never freed again by an attempt that did not.
    pub may_have_run: bool,
    pub fingerprint: Fingerprint,
    pub retention: Retention,
    pub origin: Origin,
    pub begun_at: Timestamp,
    /// Why the outcome is unknown. `None` while it is held, and also where the holder vanished
    /// without a word.
    pub cause: Option<Cause>,
}

/// Why nobody knows what the upstream did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The connection broke, or the answer was cut, over-long or not HTTP.
    Interrupted,
    TimedOut,
    /// The upstream answered with a status that does not say whether it ran.
    Status(u16),
    /// The session, and with it the lock, was lost while the upstream worked.
    SessionLost,
    /// The gateway stopped, or the task that executed was dropped.
    Stopped,
    /// The holder vanished: killed, or cut off.
    HolderGone,
}

// === impl AttemptId ===

impl AttemptId {
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

// === impl Cause ===

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("the upstream's answer was interrupted"),
            Self::TimedOut => f.write_str("the upstream timed out"),
            Self::Status(status) => write!(f, "the upstream answered {status}"),
            Self::SessionLost => f.write_str("the session was lost while the upstream worked"),
            Self::Stopped => f.write_str("the gateway stopped while the upstream worked"),
            Self::HolderGone => f.write_str("the gateway that held the key vanished"),
        }
    }
}
