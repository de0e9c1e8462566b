//! How a request ended: the closed set behind the label `outcome`.

/// How a request ended, from the caller's side.
///
/// The set is closed, so nothing a client sends becomes a label. It has the outcomes of every row
/// of the table of answers, one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The upstream was called, and its answer is stored.
    Executed,
    /// A stored answer was given.
    Replayed,
    /// The answer of a request that was in flight in this process was given.
    Joined,
    /// The upstream said that it did nothing: its answer was passed on and the key freed.
    Released,
    /// The upstream's status does not say whether it acted: passed on, the key is unknown.
    UpstreamUnknown,
    InProgress,
    KeyReused,
    KeyInvalid,
    KeyMissing,
    ScopeMissing,
    BadRequest,
    RequestTimeout,
    RequestTooLarge,
    HeadersTooLarge,
    OutcomeUnknown,
    NotReplayable,
    SessionLost,
    LedgerUnavailable,
    RecordUnreadable,
    AnswerNotStored,
    Overloaded,
    UpstreamUnreachable,
    UpstreamInterrupted,
    UpstreamTimeout,
    NoRoute,
    /// A request without a key on its way to an upstream and back.
    Passed,
}

// === impl Outcome ===

impl Outcome {
    /// Every outcome, in the order of its [`index`](Self::index).
    pub const ALL: [Self; 26] = [
        Self::Executed,
        Self::Replayed,
        Self::Joined,
        Self::Released,
        Self::UpstreamUnknown,
        Self::InProgress,
        Self::KeyReused,
        Self::KeyInvalid,
        Self::KeyMissing,
        Self::ScopeMissing,
        Self::BadRequest,
        Self::RequestTimeout,
        Self::RequestTooLarge,
        Self::HeadersTooLarge,
        Self::OutcomeUnknown,
        Self::NotReplayable,
        Self::SessionLost,
        Self::LedgerUnavailable,
        Self::RecordUnreadable,
        Self::AnswerNotStored,
        Self::Overloaded,
        Self::UpstreamUnreachable,
        Self::UpstreamInterrupted,
        Self::UpstreamTimeout,
        Self::NoRoute,
        Self::Passed,
    ];

    /// Its place in [`ALL`](Self::ALL).
    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Its name in metrics and in the access log.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Replayed => "replayed",
            Self::Joined => "joined",
            Self::Released => "released",
            Self::UpstreamUnknown => "upstream_unknown",
            Self::InProgress => "in_progress",
            Self::KeyReused => "key_reused",
            Self::KeyInvalid => "key_invalid",
            Self::KeyMissing => "key_missing",
            Self::ScopeMissing => "scope_missing",
            Self::BadRequest => "bad_request",
            Self::RequestTimeout => "request_timeout",
            Self::RequestTooLarge => "request_too_large",
            Self::HeadersTooLarge => "headers_too_large",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::NotReplayable => "not_replayable",
            Self::SessionLost => "session_lost",
            Self::LedgerUnavailable => "ledger_unavailable",
            Self::RecordUnreadable => "record_unreadable",
            Self::AnswerNotStored => "answer_not_stored",
            Self::Overloaded => "overloaded",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamInterrupted => "upstream_interrupted",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::NoRoute => "no_route",
            Self::Passed => "passed",
        }
    }
}
