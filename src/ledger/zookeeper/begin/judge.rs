//! What a look at a key means, decided without asking anyone.

use std::sync::Arc;

use crate::{
    domain::{AttemptId, Cause, Fingerprint, Intent, Record, StoredBody},
    ledger::{
        Begin, Begun, KeyState, Takeover,
        codec::Stored,
        zookeeper::{paths, stored::Found},
    },
};

/// What is to be done about a key.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    Replay(Arc<Record>),
    Mismatch(KeyState),
    Unknown(Intent),
    /// A live attempt has it.
    Held(AttemptId),
    /// Nobody knows or nothing is kept: take the lock, and begin.
    Open(Opening),
}

/// How an attempt would begin, once its lock is the lowest.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) attempt: u32,
    pub(super) may_have_run: bool,
    /// The data version of the record to write over; without one it is created.
    pub(super) replaces: Option<i32>,
    /// The key stays bound to the request that came first, by the recipe of that time.
    pub(super) fingerprint: Fingerprint,
    /// Of the attempt that is taken over.
    pub(super) earlier_cause: Option<Cause>,
}

/// `children` are those of the key's node; `found` its record, read after them or unchanged since.
pub(super) fn judge(request: &Begin, children: &[String], found: Option<&Found>) -> Verdict {
    let Some(Found { stored, version, is_expired, .. }) = found else {
        return Verdict::Open(Opening::fresh(request, None));
    };
    match stored {
        Stored::Intent { intent, .. } if paths::find_own(children, intent.attempt_id).is_some() => {
            if request.is_retry_of(&intent.fingerprint) {
                Verdict::Held(intent.attempt_id)
            } else {
                Verdict::Mismatch(KeyState::InProgress)
            }
        }
        _ if *is_expired => Verdict::Open(Opening::fresh(request, Some(*version))),
        Stored::Completed(record) if request.is_retry_of(&record.fingerprint) => {
            Verdict::Replay(Arc::new(record.clone()))
        }
        Stored::Completed(_) => Verdict::Mismatch(KeyState::Completed),
        Stored::Intent { intent, .. } if request.is_retry_of(&intent.fingerprint) => {
            unknown(request, intent, *version)
        }
        Stored::Intent { .. } => Verdict::Mismatch(KeyState::Unknown),
    }
}

fn unknown(request: &Begin, earlier: &Intent, version: i32) -> Verdict {
    let cause = earlier.cause.unwrap_or(Cause::HolderGone);
    let attempt = earlier.attempt.saturating_add(1);
    match request.takeover {
        Takeover::UpTo(most) if attempt <= most => Verdict::Open(Opening {
            attempt,
            may_have_run: true,
            replaces: Some(version),
            fingerprint: earlier.fingerprint.clone(),
            earlier_cause: Some(cause),
        }),
        Takeover::UpTo(_) | Takeover::Never => {
            Verdict::Unknown(Intent { cause: Some(cause), ..earlier.clone() })
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Whether a client that is told so gives up: then a lagging follower must not be believed.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Replay(record) => record.response.body == StoredBody::TooLarge,
            Self::Mismatch(_) | Self::Unknown(_) => true,
            Self::Held(_) | Self::Open(_) => false,
        }
    }

    /// What the caller is told, where nothing else is to be done.
    #[expect(clippy::result_large_err, reason = "it is matched at once and never kept")]
    pub(super) fn told(self) -> Result<Begun, Self> {
        match self {
            Self::Replay(record) => Ok(Begun::Completed(record)),
            Self::Mismatch(state) => Ok(Begun::FingerprintMismatch(state)),
            Self::Unknown(intent) => Ok(Begun::Unknown(intent)),
            Self::Held(_) | Self::Open(_) => Err(self),
        }
    }
}

// === impl Opening ===

impl Opening {
    pub(super) fn fresh(request: &Begin, replaces: Option<i32>) -> Self {
        Self {
            attempt: 1,
            may_have_run: false,
            replaces,
            fingerprint: request.fingerprint.clone(),
            earlier_cause: None,
        }
    }
}
