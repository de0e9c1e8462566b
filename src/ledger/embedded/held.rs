//! The ledger's side of a hold.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::{
    core::Core,
    operation::Operation,
    store::{Change, Kind, Place},
    table::Claim,
};
use crate::{
    domain::{Cause, Intent, Record, StoredResponse, Timestamp},
    ledger::{
        BoxFuture, End, EndError, Ended, Held,
        codec::{encode_intent, encode_record},
    },
};

#[derive(Debug)]
pub(super) struct HeldKey {
    core: Arc<Core>,
    claim: Claim,
    intent: Intent,
    earlier_cause: Option<Cause>,
}

// === impl HeldKey ===

impl HeldKey {
    pub(super) fn new(
        core: Arc<Core>,
        claim: Claim,
        intent: Intent,
        earlier_cause: Option<Cause>,
    ) -> Self {
        Self { core, claim, intent, earlier_cause }
    }

    fn commit(self, response: StoredResponse) -> (Change, Claim, Ended) {
        let record = completed(self.intent, response, self.core.now());
        let change = Change::Settle {
            key: *self.claim.key(),
            place: Place { expires_at: record.expires_at, token: record.token },
            kind: Kind::Completed,
            value: encode_record(&record),
        };
        (change, self.claim, Ended::Completed(Arc::new(record)))
    }

    fn release(self) -> (Change, Claim, Ended) {
        if self.intent.may_have_run {
            // This attempt did not run, an earlier one may have: the key is as unknown as before.
            let cause = self.earlier_cause.unwrap_or(Cause::HolderGone);
            return self.abandon(cause);
        }
        (Change::Free { key: *self.claim.key() }, self.claim, Ended::Released)
    }

    fn abandon(mut self, cause: Cause) -> (Change, Claim, Ended) {
        self.intent.cause = Some(cause);
        let (expires_at, value) = unknown(&self.intent, self.core.now());
        let place = Place { expires_at, token: self.intent.token };
        let key = *self.claim.key();
        (Change::Settle { key, place, kind: Kind::Unknown, value }, self.claim, Ended::Unknown)
    }
}

/// The record of an attempt whose answer is known since `now`.
pub(super) fn completed(intent: Intent, response: StoredResponse, now: Timestamp) -> Record {
    Record {
        attempt_id: intent.attempt_id,
        attempt: intent.attempt,
        token: intent.token,
        fingerprint: intent.fingerprint,
        origin: intent.origin,
        response,
        completed_at: now,
        expires_at: now.after(intent.retention.completed),
    }
}

/// The value of an attempt that ended unknown just now, and when it expires.
pub(super) fn unknown(intent: &Intent, now: Timestamp) -> (Timestamp, Vec<u8>) {
    let expires_at = match intent.retention.unknown {
        Some(retention) => now.after(retention),
        None => Timestamp::from_millis(u64::MAX),
    };
    (expires_at, encode_intent(intent, Some(now)))
}

impl Held for HeldKey {
    fn end(self: Box<Self>, end: End) -> BoxFuture<'static, Result<Ended, EndError>> {
        let core = Arc::clone(&self.core);
        let deadline = Instant::now() + core.timeout;
        let (change, claim, ended) = match end {
            End::Commit(response) => self.commit(response),
            End::Release => self.release(),
            End::Abandon(cause) => self.abandon(cause),
        };
        let (operation, done) = Operation::end(change, claim, ended);
        core.submit(operation);
        Box::pin(async move {
            match timeout_at(deadline, done).await {
                Ok(Ok(ended)) => Ok(ended),
                // Dropped unwritten: the ledger is closed, and another process may have the file.
                Ok(Err(_dropped)) => Err(EndError::LockLost),
                Err(_elapsed) => Err(EndError::NotStored { reason: core.trouble() }),
            }
        })
    }

    fn lost(&self) -> BoxFuture<'static, ()> {
        // The lock lives in this process: only its own end takes it away.
        Box::pin(self.core.over().cancelled_owned())
    }
}
