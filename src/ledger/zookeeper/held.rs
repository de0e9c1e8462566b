//! The ledger's side of a hold: each end is one transaction that deletes our lock.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use zookeeper_client::{MultiWriteResult, Stat};

use super::{
    adopt,
    client::{MOST_BYTES, Op, Operation},
    core::Core,
    fault::{Fault, Refusal},
    lock::Lock,
    paths::KeyPaths,
    sessions::jitter,
    stored::Found,
    undo,
};
use crate::{
    domain::{Cause, Intent, KeyId, Record, StoredBody, StoredResponse},
    ledger::{
        BoxFuture, End, EndError, Ended, Gate, Held, Hold, LockPlace,
        codec::{Stored, encode_readable_intent, encode_readable_record},
    },
    telemetry::ensemble,
};

#[derive(Debug)]
pub(super) struct HeldKey {
    pub(super) core: Arc<Core>,
    pub(super) key: KeyId,
    pub(super) paths: KeyPaths,
    pub(super) lock: Lock,
    pub(super) intent: Intent,
    /// Of the record's data.
    pub(super) version: i32,
    pub(super) earlier_cause: Option<Cause>,
    /// Whether the lock stood in the queue first.
    pub(super) queued: bool,
}

/// What an end changes about the record.
#[derive(Clone, Debug)]
enum Change {
    Complete(Box<Record>),
    Abandon(Cause),
    Free,
}

/// Between repetitions of an end.
const PAUSE: Duration = Duration::from_millis(100);

/// The same, where the servers refuse it.
const LONG_PAUSE: Duration = Duration::from_secs(2);

/// For an end to finish that is under way when the lease is over.
const GRACE: Duration = Duration::from_millis(20);

/// Room for the summary, the headers' framing and the paths of the transaction.
const AROUND: usize = 8 * 1024;

// === impl HeldKey ===

impl HeldKey {
    pub(super) fn into_hold(self) -> Hold {
        let gate = Gate::new(Some(self.lock.live.lease()));
        self.into_hold_behind(gate)
    }

    pub(super) fn into_hold_behind(self, gate: Gate) -> Hold {
        let (token, attempt) = (self.intent.token, self.intent.attempt);
        Hold::new(token, attempt, gate, Box::new(self))
    }

    fn change(&self, end: End) -> Change {
        match end {
            End::Commit(response) => Change::Complete(Box::new(self.record(response))),
            End::Abandon(cause) => Change::Abandon(cause),
            // This attempt did not run, an earlier one may have: the key is as unknown as before.
            End::Release if self.intent.may_have_run => {
                Change::Abandon(self.earlier_cause.unwrap_or(Cause::HolderGone))
            }
            End::Release => Change::Free,
        }
    }

    fn record(&self, mut response: StoredResponse) -> Record {
        let headers: usize = response
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 8)
            .sum();
        if let StoredBody::Kept(body) = &response.body
            && body.len() + headers + AROUND > MOST_BYTES
        {
            // No transaction could hold it: later requests are told that it is not kept.
            response.body = StoredBody::TooLarge;
        }
        let completed_at = self.core.time().now();
        Record {
            attempt_id: self.intent.attempt_id,
            attempt: self.intent.attempt,
            token: self.intent.token,
            fingerprint: self.intent.fingerprint.clone(),
            origin: self.intent.origin.clone(),
            response,
            completed_at,
            expires_at: completed_at.after(self.intent.retention.completed),
        }
    }

    /// Repeated while the lease runs, until a server has decided.
    ///
    /// `refused` is cancelled once the servers have refused it for as long as a caller waits.
    async fn carry(
        &mut self,
        change: &Change,
        refused: &CancellationToken,
    ) -> Result<Ended, EndError> {
        let patience = Instant::now() + self.core.settings.timeout;
        let mut is_in_doubt = false;
        let mut with_container = true;
        loop {
            if !self.lock.live.is_leased() {
                return Err(if is_in_doubt {
                    EndError::NotStored { reason: "the session was lost before the reply".into() }
                } else {
                    EndError::LockLost
                });
            }
            let (operation, ops) = self.transaction(change, with_container);
            match self.lock.session().transact(operation, ops).await {
                Ok(results) => {
                    ensemble::lock_released(&self.intent.origin.route);
                    return Ok(self.ended(change, &results));
                }
                // Our lock is gone: by our own transaction, if a reply was lost.
                Err(Fault::Refused { index: 0, refusal: Refusal::NoNode }) => {
                    return self.find(change).await;
                }
                // The record changed although the lock is ours: someone changed it by hand.
                Err(Fault::Refused {
                    index: 1,
                    refusal: Refusal::NoNode | Refusal::BadVersion,
                }) => {
                    drop(self.lock.session().client.delete(&self.lock.path).await);
                    return self.find(change).await;
                }
                // A waiter came: its node keeps the key's.
                Err(Fault::Refused { index: 2, .. }) => with_container = false,
                Err(Fault::InDoubt(fault)) => {
                    tracing::debug!(%fault, "end of an attempt in doubt");
                    is_in_doubt = true;
                    // The repetition tells: what was sent before it is decided before it.
                    self.lock.session().barrier().await;
                }
                Err(fault @ (Fault::Refused { .. } | Fault::NotSent(_))) => {
                    tracing::debug!(%fault, "end of an attempt failed");
                    if Instant::now() >= patience && !refused.is_cancelled() {
                        tracing::error!(%fault, "the ensemble does not store an answer");
                        refused.cancel();
                    }
                    sleep(jitter(if refused.is_cancelled() { LONG_PAUSE } else { PAUSE })).await;
                }
            }
        }
    }

    fn transaction(&self, change: &Change, with_container: bool) -> (Operation, Vec<Op>) {
        // Its GUID makes it ours, whatever someone wrote into it.
        let lock = Op::Delete { path: self.lock.path.clone(), version: None };
        let path = self.paths.record.clone();
        let version = self.version;
        match change {
            Change::Complete(record) => {
                let data = encode_readable_record(record);
                (Operation::MultiCommit, vec![lock, Op::SetData { path, data, version }])
            }
            Change::Abandon(cause) => {
                let intent = Intent { cause: Some(*cause), ..self.intent.clone() };
                let data = encode_readable_intent(&intent, Some(self.core.time().now()));
                (Operation::MultiRelease, vec![lock, Op::SetData { path, data, version }])
            }
            Change::Free => {
                let mut ops = vec![lock, Op::Delete { path, version: Some(version) }];
                if with_container {
                    ops.push(Op::Delete { path: self.paths.node.clone(), version: None });
                }
                (Operation::MultiRelease, ops)
            }
        }
    }

    fn ended(&self, change: &Change, results: &[MultiWriteResult]) -> Ended {
        match change {
            Change::Complete(record) => {
                let stat = results.iter().find_map(|result| {
                    if let MultiWriteResult::SetData { stat } = result { Some(*stat) } else { None }
                });
                Ended::Completed(Arc::new(self.stamped(record, stat)))
            }
            Change::Abandon(_) => Ended::Unknown,
            Change::Free => Ended::Released,
        }
    }

    /// Retention starts when the servers say that the record was written.
    fn stamped(&self, record: &Record, stat: Option<Stat>) -> Record {
        let mut record = record.clone();
        if let Some(stat) = stat {
            self.core.time().observe(stat.mtime);
            record.completed_at = self.core.time().at(stat.mtime);
            record.expires_at = record.completed_at.after(self.intent.retention.completed);
        }
        record
    }

    /// The lock is gone: what the record says decides.
    async fn find(&self, change: &Change) -> Result<Ended, EndError> {
        let ours = self.intent.attempt_id;
        loop {
            let found = match self.lock.session().client.get(&self.paths.record).await {
                Ok(found) => Found::read(found, self.core.time()).ok(),
                Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => {
                    return match change {
                        Change::Free => Ok(Ended::Released),
                        Change::Complete(_) | Change::Abandon(_) => Err(EndError::LockLost),
                    };
                }
                Err(_) if !self.lock.live.is_leased() => {
                    return Err(EndError::NotStored {
                        reason: "the session was lost before the reply".into(),
                    });
                }
                Err(_) => {
                    sleep(jitter(PAUSE)).await;
                    continue;
                }
            };
            return match (found.map(|found| found.stored), change) {
                (Some(Stored::Completed(record)), change) if record.attempt_id == ours => {
                    Ok(match change {
                        Change::Complete(own) if own.response == record.response => {
                            Ended::Completed(Arc::new(record))
                        }
                        Change::Complete(_) | Change::Abandon(_) | Change::Free => {
                            Ended::Decided(Arc::new(record))
                        }
                    })
                }
                (Some(Stored::Intent { intent, ended_at: Some(_) }), Change::Abandon(_))
                    if intent.attempt_id == ours =>
                {
                    Ok(Ended::Unknown)
                }
                // Another's by now: ours was freed before.
                (Some(Stored::Intent { intent, .. }), Change::Free)
                    if intent.attempt_id != ours =>
                {
                    Ok(Ended::Released)
                }
                _ => Err(EndError::LockLost),
            };
        }
    }
}

impl Held for HeldKey {
    fn end(mut self: Box<Self>, end: End) -> BoxFuture<'static, Result<Ended, EndError>> {
        let core = Arc::clone(&self.core);
        let lost = self.lock.live.lost();
        let change = self.change(end);
        let (done, mut told) = oneshot::channel();
        let refused = CancellationToken::new();
        let refusing = refused.clone();
        self.lock.live.end();
        core.spawn_end(async move {
            let ended = self.carry(&change, &refusing).await;
            if ended.is_err() && matches!(change, Change::Free) {
                // The caller says that nothing was sent: the key must become free all the same.
                undo::start(&self.core, self.key, self.lock.live);
            } else {
                // Free before the answer: who is answered may begin again at once.
                drop(self);
            }
            drop(done.send(ended));
        });
        Box::pin(async move {
            let told = tokio::select! {
                biased;
                told = &mut told => Some(told),
                () = lost => timeout(GRACE, &mut told).await.ok(),
                () = refused.cancelled() => {
                    let reason = "the ensemble refuses it".into();
                    return Err(EndError::NotStored { reason });
                }
            };
            match told {
                Some(Ok(ended)) => ended,
                Some(Err(_dropped)) => Err(EndError::LockLost),
                None => Err(EndError::NotStored { reason: "the session was lost".into() }),
            }
        })
    }

    fn adopt(self: Box<Self>, gate: Gate) -> BoxFuture<'static, Result<Hold, EndError>> {
        let core = Arc::clone(&self.core);
        let (done, told) = oneshot::channel();
        let adopting = Arc::clone(&core);
        core.spawn_end(async move {
            let adopted = tokio::select! {
                adopted = adopt::adopt(*self, gate) => adopted,
                () = adopting.closing.cancelled() => Err(EndError::LockLost),
            };
            // A hold that nobody takes leaves the key unknown.
            drop(done.send(adopted));
        });
        Box::pin(async move { told.await.unwrap_or(Err(EndError::LockLost)) })
    }

    fn place(&self) -> Option<LockPlace> {
        Some(self.lock.for_log(self.queued))
    }

    fn lost(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.lock.live.lost())
    }
}
