//! What a refusal means in words: the arbiter's verdicts as problems.

use super::{
    problem::{Code, Known, Problem},
    proxy::UpstreamError,
    timed::TooSlow,
};
use crate::{arbiter::Refusal, domain::Record, ledger::KeyState, telemetry::Outcome};

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (code, known, detail) = match refusal {
            Refusal::KeyReused(state) => (
                Code::KeyReused,
                Known::from(state),
                "This key was first used for a different request, which stands. Send the original \
                 request, or take a new key for a new operation.",
            ),
            Refusal::InProgress => (
                Code::InProgress,
                Known::InProgress,
                "A request with this key is being executed. Send it again with the same key.",
            ),
            Refusal::OutcomeUnknown => (
                Code::OutcomeUnknown,
                Known::Unknown,
                "An earlier attempt with this key may have been executed; how it ended is not \
                 known. Look the operation up at the upstream, or ask its operator.",
            ),
            Refusal::TooManyWaiters => (
                Code::Overloaded,
                Known::InProgress,
                "Too many requests wait for the one with this key that is being executed.",
            ),
            Refusal::LedgerUnavailable => (
                Code::LedgerUnavailable,
                Known::NotSent,
                "The ledger cannot be written, so this request was not forwarded.",
            ),
            Refusal::LedgerOverloaded => (
                Code::Overloaded,
                Known::NotSent,
                "The ledger is at a limit, so this request was not forwarded.",
            ),
            Refusal::RecordUnreadable => (
                Code::RecordUnreadable,
                Known::Unknown,
                "There is a record of this key that this version of the gateway cannot read.",
            ),
            Refusal::SessionLostWaiting => (
                Code::SessionLost,
                Known::InProgress,
                "The gateway lost its session while it waited for the one that holds this key.",
            ),
            Refusal::SessionLostUnsent => (
                Code::SessionLost,
                Known::NotSent,
                "The gateway lost this key's lock, or stopped, before anything was sent.",
            ),
            Refusal::SessionLost => (
                Code::SessionLost,
                Known::Unknown,
                "The gateway lost this key's lock while the upstream worked. The operation may \
                 have been executed.",
            ),
            Refusal::Stopped => (
                Code::SessionLost,
                Known::Unknown,
                "The gateway stopped while the upstream worked. The operation may have been \
                 executed.",
            ),
            Refusal::AnswerNotStored => (
                Code::AnswerNotStored,
                Known::Unknown,
                "The upstream answered, but the answer could not be stored. The operation may \
                 have been executed.",
            ),
            Refusal::UpstreamUnreachable => (
                Code::UpstreamUnreachable,
                Known::NotSent,
                "No connection to the upstream could be used; nothing was sent.",
            ),
            Refusal::UpstreamInterrupted => (
                Code::UpstreamInterrupted,
                Known::Unknown,
                "The connection broke or the answer was not whole. The operation may have been \
                 executed.",
            ),
            Refusal::UpstreamTimeout => (
                Code::UpstreamTimeout,
                Known::Unknown,
                "The upstream did not answer in time. The operation may have been executed.",
            ),
        };
        Self::new(code, known, detail)
    }
}

/// What the failure of a request without a key is called.
pub(super) fn unkeyed(error: UpstreamError) -> Problem {
    let (code, detail) = match error {
        UpstreamError::NotSent(_) | UpstreamError::Lapsed => {
            (Code::UpstreamUnreachable, "No connection to the upstream could be used.")
        }
        UpstreamError::Interrupted(_) => {
            (Code::UpstreamInterrupted, "The connection broke or the answer was not whole.")
        }
        UpstreamError::TimedOut => (Code::UpstreamTimeout, "The upstream did not answer in time."),
        UpstreamError::RequestBody(cause) if is_too_slow(&*cause) => {
            (Code::RequestTimeout, "The body paused for too long.")
        }
        UpstreamError::RequestBody(_) => (Code::BadRequest, "The body broke off or is malformed."),
    };
    Problem::new(code, Known::NotSent, detail).without_key()
}

/// Looks through the whole chain: the client that sent the body wraps its error.
fn is_too_slow(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<TooSlow>() || error.source().is_some_and(is_too_slow)
}

// === impl Problem ===

impl Problem {
    /// The answer was given once and was too large to keep.
    pub(super) fn not_replayable(record: &Record) -> Self {
        let status = record.response.status.as_u16();
        let detail = format!(
            "The operation was executed and answered with status {status}. The answer was too \
             large to keep."
        );
        Self::new(Code::NotReplayable, Known::Completed, detail)
    }
}

// === impl Known ===

impl From<KeyState> for Known {
    fn from(state: KeyState) -> Self {
        match state {
            KeyState::InProgress => Self::InProgress,
            KeyState::Unknown => Self::Unknown,
            KeyState::Completed => Self::Completed,
        }
    }
}

// === impl Code ===

impl Code {
    /// How a request that ended so is counted.
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::KeyMissing => Outcome::KeyMissing,
            Self::KeyInvalid => Outcome::KeyInvalid,
            Self::ScopeMissing => Outcome::ScopeMissing,
            Self::BadRequest => Outcome::BadRequest,
            Self::RequestTimeout => Outcome::RequestTimeout,
            Self::RequestTooLarge => Outcome::RequestTooLarge,
            Self::HeadersTooLarge => Outcome::HeadersTooLarge,
            Self::NoRoute => Outcome::NoRoute,
            Self::KeyReused => Outcome::KeyReused,
            Self::InProgress => Outcome::InProgress,
            Self::OutcomeUnknown => Outcome::OutcomeUnknown,
            Self::NotReplayable => Outcome::NotReplayable,
            Self::LedgerUnavailable => Outcome::LedgerUnavailable,
            Self::RecordUnreadable => Outcome::RecordUnreadable,
            Self::SessionLost => Outcome::SessionLost,
            Self::AnswerNotStored => Outcome::AnswerNotStored,
            Self::Overloaded => Outcome::Overloaded,
            Self::UpstreamUnreachable => Outcome::UpstreamUnreachable,
            Self::UpstreamInterrupted => Outcome::UpstreamInterrupted,
            Self::UpstreamTimeout => Outcome::UpstreamTimeout,
        }
    }
}
