//! What an operator may see of the keys, and decide about those whose outcome is unknown.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderName, StatusCode};

use super::{BoxFuture, Ensemble, KeyState, LedgerError};
use crate::domain::{
    Cause, FencingToken, Fingerprint, Intent, KeyId, Origin, Record, StoredBody, StoredResponse,
    Timestamp,
};

/// The operator's side of a [`Ledger`](super::Ledger).
///
/// # Contract
///
/// - A decision takes the key's lock like any request: it waits for its turn, it is made on what
///   is stored then, and it is durable before it returns. Of a decision and a `begin` that meet,
///   one comes first, and the other sees what it did.
/// - Only an *unknown* key is decided about. One that is held, completed or absent stays as it is,
///   and so does one whose retention is over: that is absent.
/// - A resolved key gives the operator's answer to every equal request, under the fingerprint of
///   the attempt, for `retention.completed` from the decision on. Another request is refused.
/// - A released key is absent: the next request begins a new life, under a higher token than any
///   before it.
/// - What a reader is told of a key was true at one moment of the call.
/// - Cancelling a decision leaves it undone or done, never half.
///
/// Caches of completed records need no word from here: what is completed is never decided about,
/// so no decision contradicts an answer that was given.
pub trait Operator: fmt::Debug + Send + Sync + 'static {
    /// A page of the keys, newest first as far as the ledger knows an order.
    ///
    /// While it is turned, a key that changes its state may be missed or met twice.
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Page, ListError>>;

    /// What is known of one key; `None` when it is absent.
    fn show(&self, key: KeyId) -> BoxFuture<'_, Result<Option<Entry>, LedgerError>>;

    /// `unknown -> completed`: `answer` is what happened. Its header lines must be storable.
    fn resolve(
        &self,
        key: KeyId,
        answer: StoredResponse,
    ) -> BoxFuture<'_, Result<Arc<Record>, DecideError>>;

    /// `unknown -> absent`: nothing happened, a retry may execute.
    fn release(&self, key: KeyId) -> BoxFuture<'_, Result<(), DecideError>>;

    /// `in progress -> unknown`, never absent: takes the lock from a holder that cannot be at work
    /// any more, if a call of the upstream takes no longer than `longest_call`. Refused wherever
    /// that is not certain.
    fn force(&self, key: KeyId, longest_call: Duration) -> BoxFuture<'_, Result<(), DecideError>>;

    /// What stands behind this ledger.
    fn describe(&self) -> BoxFuture<'_, Ensemble>;
}

/// Which keys to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub state: Option<KeyState>,
    /// The name of the route that the key was used on.
    pub route: Option<String>,
    /// Entries on the page at most. Fewer do not mean that it is the last.
    pub limit: usize,
    /// The `next` of the page before.
    pub after: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// Keys with a value that this version cannot read. They answer 503 until they are readable.
    pub unreadable: Vec<KeyId>,
    /// Where the next page begins; `None` after the last one. Meant for the same ledger only.
    pub next: Option<String>,
}

/// One key, without the bytes that only its caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: KeyId,
    pub state: KeyState,
    pub attempt: u32,
    pub token: FencingToken,
    /// Whether an attempt before this one may have reached the upstream.
    pub may_have_run: bool,
    pub fingerprint: Fingerprint,
    pub origin: Origin,
    /// When the attempt began; not kept once the key is completed.
    pub begun_at: Option<Timestamp>,
    /// Since when the key is in this state.
    pub since: Timestamp,
    /// When it becomes absent; `None` while it is in progress, and where it waits for a decision.
    pub expires_at: Option<Timestamp>,
    /// Why the outcome is unknown.
    pub cause: Option<Cause>,
    /// Of a completed key.
    pub answer: Option<Answer>,
}

/// What a stored answer looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    /// Of its lines, in order.
    pub headers: Vec<HeaderName>,
    /// In bytes; `None` for a body that was too large to keep.
    pub body: Option<usize>,
}

/// Why there is no page.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ListError {
    #[error("the place to go on from is not one that this ledger gave")]
    Cursor,
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why a decision was not made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DecideError {
    /// Nothing is stored, or its retention is over.
    #[error("the key is absent: nothing is known of it")]
    Absent,
    #[error("the key is in progress: an attempt holds it")]
    InProgress,
    #[error("the key is completed: its answer was given and stands")]
    Completed,
    /// There is no lock to take.
    #[error("the key is unknown already: no attempt holds it")]
    NotHeld,
    #[error("the lock cannot be taken from its holder: {reason}")]
    NotForced { reason: String },
    /// Nothing was decided.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The ledger goes on trying: look at the key before deciding again.
    #[error("the decision could not be stored in time: {reason}")]
    NotStored { reason: String },
}

// === impl Entry ===

impl Entry {
    /// Of a key that an attempt holds.
    pub fn in_progress(key: KeyId, intent: Intent) -> Self {
        let begun_at = intent.begun_at;
        Self::of_intent(key, KeyState::InProgress, intent, begun_at)
    }

    /// Of a key that nobody holds; `since` is when that was noted, if it was.
    pub fn unknown(key: KeyId, mut intent: Intent, since: Option<Timestamp>) -> Self {
        intent.cause.get_or_insert(Cause::HolderGone);
        let since = since.unwrap_or(intent.begun_at);
        let expires_at = intent.retention.unknown.map(|retention| since.after(retention));
        Self { expires_at, ..Self::of_intent(key, KeyState::Unknown, intent, since) }
    }

    fn of_intent(key: KeyId, state: KeyState, intent: Intent, since: Timestamp) -> Self {
        Self {
            key,
            state,
            attempt: intent.attempt,
            token: intent.token,
            may_have_run: intent.may_have_run,
            fingerprint: intent.fingerprint,
            origin: intent.origin,
            begun_at: Some(intent.begun_at),
            since,
            expires_at: None,
            cause: intent.cause,
            answer: None,
        }
    }

    pub fn completed(key: KeyId, record: &Record) -> Self {
        Self {
            key,
            state: KeyState::Completed,
            attempt: record.attempt,
            token: record.token,
            may_have_run: record.attempt > 1,
            fingerprint: record.fingerprint.clone(),
            origin: record.origin.clone(),
            begun_at: None,
            since: record.completed_at,
            expires_at: Some(record.expires_at),
            cause: None,
            answer: Some(Answer::of(&record.response)),
        }
    }
}

// === impl Answer ===

impl Answer {
    fn of(response: &StoredResponse) -> Self {
        Self {
            status: response.status,
            headers: response.headers.iter().map(|(name, _)| name.clone()).collect(),
            body: match &response.body {
                StoredBody::Kept(body) => Some(body.len()),
                StoredBody::TooLarge => None,
            },
        }
    }
}
