//! One attempt, from the question to the ledger until its end is stored.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
};

use tokio::{sync::oneshot, time::Instant};

use super::{
    Arbiter, Attempt, Call, Disposition, Execution, Refusal, Verdict,
    flight::{Ending, Leader},
    judge::replay_or_refuse,
    queue::Queue,
};
use crate::{
    domain::{Cause, StoredResponse},
    ledger::{Begin, Begun, EndError, Ended, Hold, LedgerError},
    telemetry::{Phase, Transition, trace::Step},
};

/// How far an execution came that is watched.
enum Watched<L, F> {
    Ended((Verdict<L>, Option<StoredResponse>)),
    /// The lock is lost, and the call goes on to its end.
    Adrift(Pin<Box<F>>, Hold),
}

/// Why an execution was given up before it ended by itself.
enum GivenUp {
    LeaseOver,
    Stopping,
}

// === impl Arbiter ===

impl Arbiter {
    /// Runs in a task of its own, so that no client that leaves can cancel any step.
    pub(super) async fn lead<L, E, F>(
        self,
        call: Call,
        leader: Leader,
        execute: E,
        tell: oneshot::Sender<Verdict<L>>,
    ) where
        L: Send + 'static,
        E: FnOnce(Attempt) -> F + Send + 'static,
        F: Future<Output = Execution<L>> + Send + 'static,
    {
        let call = Arc::new(call);
        let (verdict, unstored) = match self.begin(&call).await {
            Ok(Begun::Owner(hold)) => {
                leader.owned(&call.fingerprint);
                let _in_flight = call.metrics.key_in_flight();
                let attempt = Some((hold.attempt(), hold.token()));
                let place = hold.place();
                if place.as_ref().is_some_and(|place| !place.queued) {
                    call.log(Transition::Created, place.as_ref(), attempt);
                }
                call.log(Transition::Acquired, place.as_ref(), attempt);
                let ended = match self.execute(&call, hold, execute).await {
                    Watched::Ended(ended) => ended,
                    Watched::Adrift(execution, hold) => {
                        call.log(Transition::SessionExpired, place.as_ref(), attempt);
                        // Told at once: who retries waits for the call, once it is adopted.
                        let refusal = Refusal::SessionLost;
                        leader.end(call.fingerprint.clone(), Ending::Refused(refusal));
                        drop(tell.send(Verdict::Refused(refusal)));
                        return self.adopt(&call, hold, execution).await;
                    }
                };
                let how = match &ended {
                    (Verdict::Refused(Refusal::SessionLost | Refusal::SessionLostUnsent), _) => {
                        Transition::SessionExpired
                    }
                    _ => Transition::Released,
                };
                call.log(how, place.as_ref(), attempt);
                ended
            }
            Ok(Begun::Completed(record)) => {
                self.0.cache.insert(call.key, &record, self.0.ledger.remaining(&record));
                (replay_or_refuse(&call, Arc::clone(&record), false), None)
            }
            Ok(Begun::FingerprintMismatch(state)) => refused(Refusal::KeyReused(state)),
            Ok(Begun::InProgress) => refused(Refusal::InProgress),
            Ok(Begun::Unknown(intent)) => {
                call.trace.link(intent.origin.trace);
                refused(Refusal::OutcomeUnknown)
            }
            Err(error) => refused(ledger_failed(&call, &error)),
        };
        leader.end(call.fingerprint.clone(), ending(&verdict, unstored));
        // The client may have left; its answer is stored all the same.
        drop(tell.send(verdict));
    }

    async fn begin(&self, call: &Arc<Call>) -> Result<Begun, LedgerError> {
        if self.0.stopping.is_cancelled() {
            return Err(LedgerError::Unavailable {
                reason: "the gateway stops".to_owned(),
                source: None,
            });
        }
        let queue = Queue::new(call);
        let begin = Begin {
            key: call.key,
            subject: Arc::clone(&call.subject),
            fingerprint: call.fingerprint.clone(),
            origin: call.origin.clone(),
            retention: call.policy.retention,
            takeover: call.policy.takeover,
            wait_until: call.wait_until,
            observer: Some(queue.clone()),
        };
        let started = Instant::now();
        let span = call.trace.begin(Step::Begin);
        let verdict = self.0.ledger.begin(begin).await;
        let mut took = started.elapsed();
        if let Ok(Begun::Owner(hold)) = &verdict {
            call.trace.attempt(hold.attempt(), hold.token());
        }
        drop(span);
        if let Some((waited, place)) = queue.left() {
            took = took.saturating_sub(waited);
            call.metrics.ledger_phase(Phase::Wait, waited);
            match &verdict {
                Ok(Begun::Owner(_)) => {}
                Err(LedgerError::SessionLost | LedgerError::SessionLostBeginning) => {
                    call.log(Transition::SessionExpired, Some(&place), None);
                }
                Ok(_) | Err(_) => call.log(Transition::Released, Some(&place), None),
            }
        }
        call.metrics.ledger_phase(Phase::Begin, took);
        verdict
    }

    /// Races the execution against the lease, then stores how it ended.
    async fn execute<L, E, F>(&self, call: &Call, hold: Hold, execute: E) -> Watched<L, F>
    where
        E: FnOnce(Attempt) -> F,
        F: Future<Output = Execution<L>>,
    {
        // It came while the intent was written. Polling the execution once can be enough to send.
        if self.0.stopping.is_cancelled() {
            return Watched::Ended(refused(release(hold, Refusal::SessionLostUnsent).await));
        }
        let attempt =
            Attempt { number: hold.attempt(), token: hold.token(), gate: hold.gate().clone() };
        let execution = if call.policy.settles {
            let mut execution = Box::pin(execute(attempt));
            let ended = self.watch(&hold, execution.as_mut()).await;
            if matches!(ended, Err(GivenUp::LeaseOver)) && hold.gate().is_passed() {
                return Watched::Adrift(execution, hold);
            }
            ended
        } else {
            self.watch(&hold, pin!(execute(attempt))).await
            // Here the execution is dropped, and with it the connection to the upstream.
        };
        let started = Instant::now();
        let _span = call.trace.begin(Step::Commit);
        let ended = match execution {
            Ok(execution) => self.settle(call, hold, execution).await,
            Err(given_up) => refused(give_up(call, hold, &given_up).await),
        };
        call.metrics.ledger_phase(Phase::Commit, started.elapsed());
        Watched::Ended(ended)
    }

    /// Races the execution against the lease and the end of the gateway.
    async fn watch<L>(
        &self,
        hold: &Hold,
        execution: Pin<&mut impl Future<Output = Execution<L>>>,
    ) -> Result<Execution<L>, GivenUp> {
        tokio::select! {
            biased;
            // Ahead of the answer: an owner that was paused may find both ready.
            () = hold.lost() => Err(GivenUp::LeaseOver),
            execution = execution => Ok(execution),
            () = self.0.stopping.cancelled() => Err(GivenUp::Stopping),
        }
    }

    /// Takes the key again while the call goes on, and stores how it ends. The client is told
    /// already.
    async fn adopt<L>(
        &self,
        call: &Call,
        hold: Hold,
        execution: impl Future<Output = Execution<L>>,
    ) {
        let both = async { tokio::join!(hold.adopt(), execution) };
        let (adopted, execution) = tokio::select! {
            both = both => both,
            () = self.0.stopping.cancelled() => return,
        };
        match adopted {
            Ok(hold) => {
                let (place, attempt) = (hold.place(), Some((hold.attempt(), hold.token())));
                drop(self.settle(call, hold, execution).await);
                call.log(Transition::Released, place.as_ref(), attempt);
            }
            Err(error) => {
                end_failed(call, &error);
            }
        }
    }

    /// Stores the end; the client is answered only after this.
    async fn settle<L>(
        &self,
        call: &Call,
        hold: Hold,
        execution: Execution<L>,
    ) -> (Verdict<L>, Option<StoredResponse>) {
        match execution {
            Execution::Answered { stored, disposition: Disposition::Store, live } => {
                match hold.commit(stored).await {
                    Ok(Ended::Completed(record)) => {
                        self.0.cache.insert(call.key, &record, self.0.ledger.remaining(&record));
                        (Verdict::Executed { live, record }, None)
                    }
                    Ok(Ended::Decided(record)) => (replay_or_refuse(call, record, false), None),
                    Ok(Ended::Released | Ended::Unknown) => refused(Refusal::AnswerNotStored),
                    Err(error) => refused(end_failed(call, &error)),
                }
            }
            Execution::Answered { stored, disposition: Disposition::Release, live } => {
                match hold.release().await {
                    Ok(Ended::Decided(record)) => (replay_or_refuse(call, record, false), None),
                    Ok(Ended::Released | Ended::Completed(_)) => {
                        (Verdict::Passed { live, disposition: Disposition::Release }, Some(stored))
                    }
                    // An earlier attempt may have run: this answer speaks only of this one.
                    Ok(Ended::Unknown) => {
                        (Verdict::Passed { live, disposition: Disposition::Unknown }, Some(stored))
                    }
                    Err(error) => refused(end_failed(call, &error)),
                }
            }
            Execution::Answered { stored, disposition: Disposition::Unknown, live } => {
                let cause = Cause::Status(stored.status.as_u16());
                match leave_unknown(call, hold, cause).await {
                    Ok(_) => {
                        (Verdict::Passed { live, disposition: Disposition::Unknown }, Some(stored))
                    }
                    Err(error) => refused(end_failed(call, &error)),
                }
            }
            Execution::NotSent => refused(release(hold, Refusal::UpstreamUnreachable).await),
            Execution::Lapsed => refused(release(hold, Refusal::SessionLostUnsent).await),
            Execution::Interrupted => {
                let told = Refusal::UpstreamInterrupted;
                refused(abandon(call, hold, Cause::Interrupted, told).await)
            }
            Execution::TimedOut => {
                refused(abandon(call, hold, Cause::TimedOut, Refusal::UpstreamTimeout).await)
            }
        }
    }
}

/// What the requests that joined are told. An answer that was not stored is shared only if it is
/// whole; after one that was not, the ledger tells each of them.
fn ending<L>(verdict: &Verdict<L>, unstored: Option<StoredResponse>) -> Ending {
    match verdict {
        Verdict::Executed { record, .. } | Verdict::Replay { record, .. } => {
            Ending::Completed(Arc::clone(record))
        }
        Verdict::Passed { .. } => match unstored {
            Some(response) if !response.is_tombstone() => Ending::Shared(Arc::new(response)),
            Some(_) | None => Ending::Again,
        },
        Verdict::Shared { response } => Ending::Shared(Arc::clone(response)),
        Verdict::Refused(refusal) => Ending::Refused(*refusal),
    }
}

async fn give_up(call: &Call, hold: Hold, why: &GivenUp) -> Refusal {
    if !hold.gate().is_passed() {
        return release(hold, Refusal::SessionLostUnsent).await;
    }
    match why {
        GivenUp::LeaseOver => abandon(call, hold, Cause::SessionLost, Refusal::SessionLost).await,
        GivenUp::Stopping => abandon(call, hold, Cause::Stopped, Refusal::Stopped).await,
    }
}

/// Frees the key of an attempt that sent nothing, then tells `refusal`.
async fn release(hold: Hold, refusal: Refusal) -> Refusal {
    match hold.release().await {
        Ok(_) => refusal,
        Err(EndError::LockLost) => Refusal::SessionLostUnsent,
        // Nothing was sent; the ledger goes on freeing the key.
        Err(EndError::NotStored { .. }) => Refusal::LedgerUnavailable,
    }
}

/// Leaves the key unknown, then tells `refusal`: it says "unknown" whether or not this was stored,
/// since a hold that is lost leaves its intent, and an intent without a holder is unknown.
async fn abandon(call: &Call, hold: Hold, cause: Cause, refusal: Refusal) -> Refusal {
    drop(leave_unknown(call, hold, cause).await);
    refusal
}

async fn leave_unknown(call: &Call, hold: Hold, cause: Cause) -> Result<Ended, EndError> {
    let (attempt, token) = (hold.attempt(), hold.token());
    let stored = hold.abandon(cause).await;
    tracing::warn!(
        route = &*call.origin.route,
        request_id = &*call.origin.request_id,
        key_id = %call.key,
        attempt,
        fencing_token = token.get(),
        %cause,
        stored = stored.is_ok(),
        "outcome of the key is unknown"
    );
    stored
}

fn ledger_failed(call: &Call, error: &LedgerError) -> Refusal {
    let refusal = match error {
        LedgerError::Unavailable { .. } => Refusal::LedgerUnavailable,
        LedgerError::SessionLost => Refusal::SessionLostWaiting,
        LedgerError::SessionLostBeginning => Refusal::SessionLostUnsent,
        LedgerError::RecordUnreadable { .. } => Refusal::RecordUnreadable,
        LedgerError::Overloaded { .. } => Refusal::LedgerOverloaded,
    };
    tracing::warn!(
        route = &*call.origin.route,
        request_id = &*call.origin.request_id,
        key_id = %call.key,
        error = error as &dyn std::error::Error,
        "key could not be begun"
    );
    refusal
}

fn end_failed(call: &Call, error: &EndError) -> Refusal {
    tracing::error!(
        route = &*call.origin.route,
        request_id = &*call.origin.request_id,
        key_id = %call.key,
        error = error as &dyn std::error::Error,
        "upstream answered, but the end of the attempt is not stored"
    );
    match error {
        EndError::LockLost => Refusal::SessionLost,
        EndError::NotStored { .. } => Refusal::AnswerNotStored,
    }
}

fn refused<L>(refusal: Refusal) -> (Verdict<L>, Option<StoredResponse>) {
    (Verdict::Refused(refusal), None)
}
