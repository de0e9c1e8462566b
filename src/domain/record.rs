//! What is kept for a completed key.

use super::{AttemptId, FencingToken, Fingerprint, Origin, StoredResponse, Timestamp};

/// The only answer that any client gets until `expires_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub attempt_id: AttemptId,
    pub attempt: u32,
    pub token: FencingToken,
    pub fingerprint: Fingerprint,
    pub origin: Origin,
    pub response: StoredResponse,
    pub completed_at: Timestamp,
    pub expires_at: Timestamp,
}
