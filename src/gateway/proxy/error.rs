//! Why a request got no answer, and whether the upstream may have acted on it.

use crate::BoxError;

/// Why the upstream gave no (whole) answer.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No endpoint could be connected to, or every connection ended before a byte was written.
    #[error("not one byte of the request went upstream")]
    NotSent(#[source] BoxError),
    /// The key's lease was over before the first byte, so nothing was written.
    #[error("the lease on the key was over before the first byte")]
    Lapsed,
    /// Bytes went out, and then the connection broke, or the answer was cut, over-long or not HTTP.
    #[error("the call was interrupted after bytes were sent")]
    Interrupted(#[source] BoxError),
    /// Bytes went out, and the answer took too long.
    #[error("the upstream did not answer in time after bytes were sent")]
    TimedOut,
    /// The client's own body failed while it streamed upstream; bytes may have gone out.
    #[error("the request's body broke off while it was forwarded")]
    RequestBody(#[source] BoxError),
}

// === impl UpstreamError ===

impl UpstreamError {
    /// Whether the upstream may have seen a byte.
    ///
    /// The match has no wildcard arm: a new variant must decide this before it compiles.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::NotSent(_) | Self::Lapsed => false,
            Self::Interrupted(_) | Self::TimedOut | Self::RequestBody(_) => true,
        }
    }

    /// One word, for traces.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            Self::NotSent(_) => "not_sent",
            Self::Lapsed => "lapsed",
            Self::Interrupted(_) => "interrupted",
            Self::TimedOut => "timed_out",
            Self::RequestBody(_) => "request_body",
        }
    }
}
