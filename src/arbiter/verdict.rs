//! What the arbiter is asked and what it says.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Disposition, Permit, Policy, Reserved};
use crate::{
    domain::{
        FencingToken, Fingerprint, IdempotencyKey, KeyId, Origin, Record, StoredResponse, Subject,
    },
    ledger::{Gate, KeyState, LockPlace},
    telemetry::{KeyNaming, LockEvent, RouteMetrics, SessionId, Transition, trace::Trace},
};

/// A keyed request, read completely.
#[derive(Debug)]
pub struct Call {
    pub key: KeyId,
    pub subject: Arc<Subject>,
    /// By the route's current recipe.
    pub fingerprint: Fingerprint,
    pub origin: Origin,
    pub policy: Arc<Policy>,
    /// Until when to wait for another request with this key; `None` refuses at once.
    pub wait_until: Option<Instant>,
    /// Lives as long as the attempt, not as its client's connection.
    pub permit: Permit,
    /// Of the bytes of the request and of its answer: held until the answer is stored.
    pub reserved: Reserved,
    /// For the log only.
    pub idempotency_key: IdempotencyKey,
    pub key_naming: KeyNaming,
    pub metrics: RouteMetrics,
    /// Of the request.
    pub trace: Trace,
}

/// What the one that executes is given.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// 1 is the first.
    pub number: u32,
    pub token: FencingToken,
    /// To be opened right before the first byte goes upstream.
    pub gate: Gate,
}

/// How an execution ended; `L` is the live answer for the client that executes.
#[derive(Debug)]
pub enum Execution<L> {
    Answered {
        /// What a replay gives.
        stored: StoredResponse,
        disposition: Disposition,
        live: L,
    },
    /// Not one byte was sent.
    NotSent,
    /// The lease was over before the first byte, which was not sent.
    Lapsed,
    /// The connection broke or the answer was not whole HTTP, after bytes were sent.
    Interrupted,
    /// No whole answer in time, after bytes were sent.
    TimedOut,
}

/// What becomes of a keyed request.
#[derive(Debug)]
pub enum Verdict<L> {
    /// This request executed, and its answer is stored.
    Executed {
        live: L,
        record: Arc<Record>,
    },
    /// This request executed, and the upstream's answer is passed on without being stored.
    Passed {
        live: L,
        disposition: Disposition,
    },
    /// An equal request that ran at the same time got this answer, which is not stored.
    Shared {
        response: Arc<StoredResponse>,
    },
    /// The stored answer; `joined` when the execution was awaited in this process.
    Replay {
        record: Arc<Record>,
        joined: bool,
    },
    Refused(Refusal),
}

/// Why a request is not answered by its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another request came first under this key.
    KeyReused(KeyState),
    /// In flight, and the wait ran out.
    InProgress,
    OutcomeUnknown,
    /// Too many requests wait in this process for this key.
    TooManyWaiters,
    LedgerUnavailable,
    /// A bound of the ledger is reached.
    LedgerOverloaded,
    RecordUnreadable,
    /// Before the lock was ours.
    SessionLostWaiting,
    /// The lock was ours, and nothing was sent.
    SessionLostUnsent,
    /// The upstream may have run.
    SessionLost,
    /// The gateway stopped while the upstream worked.
    Stopped,
    AnswerNotStored,
    UpstreamUnreachable,
    UpstreamInterrupted,
    UpstreamTimeout,
}

// === impl Call ===

impl Call {
    /// Whether this request is the one that `stored` was made of.
    pub(super) fn matches(&self, stored: &Fingerprint) -> bool {
        self.fingerprint.is_retry_of(stored, &self.subject)
    }

    /// Logs a transition of the key's lock; `attempt` once it is ours.
    pub(super) fn log(
        &self,
        event: Transition,
        place: Option<&LockPlace>,
        attempt: Option<(u32, FencingToken)>,
    ) {
        LockEvent {
            event,
            key: self.key_naming.name(&self.idempotency_key, &self.key),
            znode_path: place.map(|place| &*place.path),
            session_id: place.map(|place| SessionId(place.session)),
            route: &self.origin.route,
            request_id: &self.origin.request_id,
            attempt: attempt.map(|(number, _)| number),
            fencing_token: attempt.map(|(_, token)| token),
            gateway: &self.origin.gateway,
        }
        .log();
    }
}
