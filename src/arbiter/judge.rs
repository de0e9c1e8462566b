//! One request's way to its verdict: cache, flight, ledger.

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
};

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{
    Arbiter, Attempt, Call, Execution, Refusal, Verdict,
    flight::{Ending, Follower, Phase, Place},
};
use crate::{
    domain::Record,
    ledger::KeyState,
    telemetry::{self, RouteMetrics, trace::Step},
};

/// What a follower learned.
enum Followed<L> {
    Verdict(Verdict<L>),
    /// Nothing that holds for it: it begins on its own.
    Again,
}

// === impl Arbiter ===

impl Arbiter {
    /// Judges `call`, and runs `execute` if this call is the one that executes.
    ///
    /// `execute` runs in a task of its own, at most once, and only after the ledger has stored the
    /// intent. Waits at most for the call's `wait_until`, beyond the execution itself.
    ///
    /// Cancel safe: a caller that leaves while it leads cancels nothing; the attempt goes on and
    /// its answer is stored for the retry. One that leaves while it waits leaves no trace.
    pub async fn judge<L, E, F>(&self, call: Call, execute: E) -> Verdict<L>
    where
        L: Send + 'static,
        E: FnOnce(Attempt) -> F + Send + 'static,
        F: Future<Output = Execution<L>> + Send + 'static,
    {
        loop {
            if let Some(record) = self.0.cache.get(&call.key) {
                return replay_or_refuse(&call, record, false);
            }
            match self.0.flights.enter(call.key) {
                Place::Leader(leader) => {
                    let (tell, told) = oneshot::channel();
                    let attempt = self.clone().lead(call, leader, execute, tell);
                    self.0.attempts.spawn(attempt);
                    // A task that panicked dropped its hold, and the hold left the key unknown if
                    // the gate was passed. Which of the two is not known here: say the worse.
                    return told.await.unwrap_or(Verdict::Refused(Refusal::UpstreamInterrupted));
                }
                Place::Follower(follower) => match self.follow(&call, follower).await {
                    Followed::Verdict(verdict) => return verdict,
                    Followed::Again => {}
                },
            }
        }
    }

    async fn follow<L>(&self, call: &Call, follower: Follower) -> Followed<L> {
        let max_waiters = self.0.max_waiters_per_key.load(Ordering::Relaxed);
        let _waiter = call.metrics.waiter();
        let _waited = Waited { metrics: &call.metrics, started: Instant::now() };
        let _span = call.trace.begin(Step::Wait);
        loop {
            let (phase, changed) = follower.look();
            let must_wait_for_verdict = match phase {
                Phase::Beginning => true,
                Phase::Owned(fingerprint) if !call.matches(&fingerprint) => {
                    let refusal = Refusal::KeyReused(KeyState::InProgress);
                    return Followed::Verdict(Verdict::Refused(refusal));
                }
                Phase::Owned(_) => false,
                Phase::Ended(fingerprint, ending) if call.matches(&fingerprint) => {
                    return ended(call, ending);
                }
                // An ending says nothing about a different request.
                Phase::Ended(..) | Phase::Gone => return Followed::Again,
            };
            // After the look: a different request is told so, however many wait.
            if follower.ahead >= max_waiters {
                return Followed::Verdict(Verdict::Refused(Refusal::TooManyWaiters));
            }
            match call.wait_until {
                Some(deadline) => {
                    if timeout_at(deadline, changed).await.is_err() {
                        return Followed::Verdict(Verdict::Refused(Refusal::InProgress));
                    }
                }
                // Without a wait only the ledger's verdict is awaited, which has its own bound.
                None if must_wait_for_verdict => changed.await,
                None => return Followed::Verdict(Verdict::Refused(Refusal::InProgress)),
            }
        }
    }
}

/// Records how long a follower waited, whether it was answered or left.
struct Waited<'a> {
    metrics: &'a RouteMetrics,
    started: Instant,
}

impl Drop for Waited<'_> {
    fn drop(&mut self) {
        self.metrics.ledger_phase(telemetry::Phase::Wait, self.started.elapsed());
    }
}

/// What the ending of an equal request means for `call`.
fn ended<L>(call: &Call, ending: Ending) -> Followed<L> {
    match ending {
        Ending::Completed(record) => Followed::Verdict(replay_or_refuse(call, record, true)),
        Ending::Shared(response) => Followed::Verdict(Verdict::Shared { response }),
        // The leader's wait ran out; this request may have come later and keeps its own.
        Ending::Refused(Refusal::InProgress)
            if call.wait_until.is_some_and(|at| at > Instant::now()) =>
        {
            Followed::Again
        }
        Ending::Refused(refusal) => Followed::Verdict(Verdict::Refused(refusal)),
        Ending::Again => Followed::Again,
    }
}

pub(super) fn replay_or_refuse<L>(call: &Call, record: Arc<Record>, joined: bool) -> Verdict<L> {
    if call.matches(&record.fingerprint) {
        call.trace.link(record.origin.trace);
        Verdict::Replay { record, joined }
    } else {
        Verdict::Refused(Refusal::KeyReused(KeyState::Completed))
    }
}
