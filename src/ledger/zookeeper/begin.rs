//! From a request for a key's lock to the hold, or to why not.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};
use zookeeper_client::MultiWriteResult;

use super::{
    client::{Looked, Op, Operation},
    core::{Core, closed},
    fault::{Fault, Refusal},
    held::HeldKey,
    judge::{Opening, Verdict, judge},
    lock::{self, Lock},
    paths::{self, KeyPaths},
    session::{Live, Session},
    sessions::jitter,
    stored::{Found, UNSTAMPED, token},
    turns::{Busy, Other, Turn},
    undo,
};
use crate::{
    domain::{AttemptId, Cause, Intent, KeyId},
    ledger::{Begin, Begun, LedgerError, codec::encode_readable_intent},
};

/// What one look at a key came to.
pub(super) enum Step {
    Told(Result<Begun, LedgerError>),
    /// Something changed meanwhile, or a reply is missing.
    Again,
}

/// One request on its way to the key's lock.
pub(super) struct Seeker<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) request: &'a Begin,
    pub(super) paths: &'a KeyPaths,
    pub(super) caller: &'a mut oneshot::Sender<Result<Begun, LedgerError>>,
    /// Until when the ensemble may make the caller wait; a live holder's time is not counted.
    pub(super) patience: Instant,
}

/// How a lock was come by that stood in the queue.
pub(super) struct Taken {
    pub(super) earlier_cause: Option<Cause>,
}

/// The longest pause before a key is looked at again.
const PAUSE: Duration = Duration::from_millis(50);

/// Cancel safe: the attempt is a task of its own, and gives back what nobody takes.
pub(super) async fn begin(core: &Arc<Core>, request: Begin) -> Result<Begun, LedgerError> {
    if core.closing.is_cancelled() {
        return Err(closed());
    }
    let (mut caller, told) = oneshot::channel();
    let now = Instant::now();
    // What is in doubt by then is cleared up without the caller.
    let enough = request.wait_until.map_or(now, |until| until.max(now)) + core.settings.timeout;
    let task = Arc::clone(core);
    core.spawn(async move {
        let paths = task.layout.key(&request.key);
        let patience = Instant::now() + task.settings.timeout;
        let (core, request) = (&task, &request);
        let seeker = Seeker { core, request, paths: &paths, caller: &mut caller, patience };
        let begun = seeker.seek().await;
        // A hold that nobody takes is dropped here or in the channel, and so releases the key.
        drop(caller.send(begun));
    });
    tokio::select! {
        biased;
        told = told => told.unwrap_or_else(|_dropped| Err(closed())),
        () = core.closing.cancelled() => Err(closed()),
        () = sleep_until(enough) => Err(core.unavailable()),
    }
}

// === impl Seeker ===

impl Seeker<'_> {
    async fn seek(mut self) -> Result<Begun, LedgerError> {
        loop {
            if self.caller.is_closed() || self.core.closing.is_cancelled() {
                return Err(closed());
            }
            let sessions = &self.core.sessions;
            let Some(session) = sessions.usable_until(&self.request.key, self.patience).await
            else {
                return Err(self.core.unavailable());
            };
            match self.look(&session).await {
                Step::Told(told) => return told,
                Step::Again if Instant::now() >= self.patience => {
                    return Err(self.core.unavailable());
                }
                Step::Again => sleep(jitter(PAUSE)).await,
            }
        }
    }

    /// One read for a key that is new or completed.
    async fn look(&mut self, session: &Arc<Session>) -> Step {
        let first = match session.client.get(&self.paths.record).await {
            Ok(found) => match Found::read(found, self.core.time()) {
                Ok(found) => Some(found),
                Err(unreadable) => return Step::Told(Err(unreadable)),
            },
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => None,
            Err(fault) => return again(&fault),
        };
        let mut turn = None;
        if let Some(found) = first {
            if let verdict @ Verdict::Replay(_) = judge(self.request, &[], Some(&found))
                && !verdict.is_final()
                && let Ok(begun) = verdict.told()
            {
                return Step::Told(Ok(begun));
            }
        } else {
            let taken = match self.core.turns.take(self.request.key) {
                Ok(turn) => turn,
                Err(busy) => return self.wait_for(busy).await,
            };
            if let Some(step) = self.begin_new(session).await {
                return step;
            }
            turn = Some(taken);
        }
        self.look_closely(session, turn).await
    }

    /// The key's node is there. No write, unless the key is open to this request.
    async fn look_closely(&mut self, session: &Arc<Session>, turn: Option<Turn>) -> Step {
        let mut is_confirmed = false;
        loop {
            let (children, found) = match self.snapshot(session).await {
                Ok(Some(snapshot)) => snapshot,
                Ok(None) => return Step::Again,
                Err(step) => return step,
            };
            self.core.saw(&self.request.origin.route, paths::contenders(&children));
            let verdict = judge(self.request, &children, found.as_ref());
            if verdict.is_final() && !is_confirmed {
                if !session.barrier().await {
                    return Step::Again;
                }
                is_confirmed = true;
                continue;
            }
            let is_taken = match verdict.told() {
                Ok(begun) => return Step::Told(Ok(begun)),
                Err(Verdict::Held(_)) => true,
                // Someone is about to begin, or holds the lock for reasons of its own.
                Err(_) => found.is_none() && paths::is_contended(&children),
            };
            if is_taken && self.request.wait_until.is_none() {
                return Step::Told(Ok(Begun::InProgress));
            }
            break;
        }
        let turn = match turn {
            Some(turn) => turn,
            None => match self.core.turns.take(self.request.key) {
                Ok(turn) => turn,
                Err(busy) => return self.wait_for(busy).await,
            },
        };
        self.contend(session, turn).await
    }

    async fn wait_for(&mut self, busy: Busy) -> Step {
        let other = tokio::select! {
            other = busy.wait(self.request.wait_until, self.patience) => other,
            () = self.caller.closed() => Other::Waits,
        };
        match other {
            Other::Waits => Step::Told(Ok(Begun::InProgress)),
            Other::Over => {
                self.be_patient();
                Step::Again
            }
        }
    }

    /// A holder's time is not the ensemble's.
    pub(super) fn be_patient(&mut self) {
        self.patience = Instant::now() + self.core.settings.timeout;
    }

    /// The children and the record at one moment; `None` if they changed meanwhile.
    async fn snapshot(
        &self,
        session: &Session,
    ) -> Result<Option<(Vec<String>, Option<Found>)>, Step> {
        let looked = session.client.look(&self.paths.record, &self.paths.node).await;
        let Looked { before, children, after } = looked.map_err(|fault| again(&fault))?;
        let Some(children) = children else { return Ok(None) };
        // A commit between the two would look like an unknown outcome.
        let zxid = |found: &Option<(Vec<u8>, zookeeper_client::Stat)>| {
            found.as_ref().map(|(_, stat)| stat.mzxid)
        };
        if zxid(&before) != zxid(&after) {
            return Ok(None);
        }
        let found = after.map(|found| Found::read(found, self.core.time())).transpose();
        found.map(|found| Some((children, found))).map_err(|error| Step::Told(Err(error)))
    }

    /// Container, lock and intent in one transaction, which succeeds for the sole contender only.
    /// `None` if the key's node is there already.
    async fn begin_new(&self, session: &Arc<Session>) -> Option<Step> {
        if let Err(overloaded) = session.has_room() {
            return Some(Step::Told(Err(overloaded)));
        }
        let live = session.enter(AttemptId::random());
        let opening = Opening::fresh(self.request, None);
        let intent = self.intent(live.attempt(), &opening);
        let ops = vec![
            Op::CreateContainer { path: self.paths.node.clone() },
            Op::CreateLock {
                prefix: self.paths.lock_prefix(live.attempt()),
                data: self.lock_data(),
            },
            Op::Create {
                path: self.paths.record.clone(),
                data: encode_readable_intent(&intent, None),
            },
        ];
        match session.transact(Operation::MultiBegin, ops).await {
            Ok(results) => Some(self.begun(live, &intent, &results)),
            Err(Fault::Refused { index: 0, refusal: Refusal::NodeExists }) => None,
            Err(Fault::Refused { index: 0, refusal: Refusal::NoNode }) => {
                // An operator, or another tool, took the shard away.
                let shard = super::prepare::create(&session.client, &self.paths.shard).await;
                Some(shard.map_or_else(|fault| again(&fault), |()| Step::Again))
            }
            Err(Fault::InDoubt(_)) => Some(self.find_new(live, intent).await),
            Err(fault) => Some(again(&fault)),
        }
    }

    fn begun(&self, live: Live, intent: &Intent, results: &[MultiWriteResult]) -> Step {
        // Servers before 3.8.2 tell the transaction in the container's stat only.
        let mut zxid = None;
        let mut lock = None;
        for result in results {
            if let MultiWriteResult::Create { path, stat } = result {
                if !stat.is_invalid() {
                    zxid = zxid.or(Some(stat.czxid));
                }
                if path.starts_with(&self.paths.lock_prefix(live.attempt())) {
                    lock = Some(path.clone());
                }
            }
        }
        let (Some(zxid), Some(path)) = (zxid, lock) else {
            undo::start(self.core, self.request.key, live);
            return Step::Told(Err(self.core.unavailable()));
        };
        let Some(lock) = Lock::new(live, path) else {
            return Step::Told(Err(self.core.unavailable()));
        };
        let intent = Intent { token: token(zxid), ..intent.clone() };
        self.own(lock, intent, 0, None)
    }

    /// After a lost reply.
    async fn find_new(&self, live: Live, intent: Intent) -> Step {
        let Some(found) = lock::find(&live, self.paths).await else {
            undo::start(self.core, self.request.key, live);
            return Step::Told(Err(LedgerError::SessionLostBeginning));
        };
        let Some(path) = found else { return Step::Again };
        loop {
            match live.session().client.get(&self.paths.record).await {
                Ok((_, stat)) => {
                    let intent = Intent { token: token(stat.mzxid), ..intent };
                    let Some(lock) = Lock::new(live, path) else { return Step::Again };
                    return self.own(lock, intent, stat.version, None);
                }
                Err(fault) if live.session().lost.is_cancelled() => {
                    undo::start(self.core, self.request.key, live);
                    tracing::debug!(%fault, "begin in doubt at the end of its session");
                    return Step::Told(Err(LedgerError::SessionLostBeginning));
                }
                Err(_) => sleep(jitter(PAUSE)).await,
            }
        }
    }

    pub(super) fn own(
        &self,
        mut lock: Lock,
        intent: Intent,
        version: i32,
        taken: Option<Taken>,
    ) -> Step {
        if taken.is_none() {
            lock.count(&self.request.origin.route);
        }
        let held = HeldKey {
            core: Arc::clone(self.core),
            key: self.request.key,
            paths: self.paths.clone(),
            lock,
            intent,
            version,
            queued: taken.is_some(),
            earlier_cause: taken.and_then(|taken| taken.earlier_cause),
        };
        Step::Told(Ok(Begun::Owner(held.into_hold())))
    }

    pub(super) fn intent(&self, attempt_id: AttemptId, opening: &Opening) -> Intent {
        Intent {
            attempt_id,
            attempt: opening.attempt,
            token: UNSTAMPED,
            may_have_run: opening.may_have_run,
            fingerprint: opening.fingerprint.clone(),
            retention: self.request.retention,
            origin: self.request.origin.clone(),
            begun_at: self.core.time().now(),
            cause: None,
        }
    }

    /// For the person who looks at the node.
    pub(super) fn lock_data(&self) -> Vec<u8> {
        let origin = &self.request.origin;
        let fingerprint = KeyId::from_bytes(self.request.fingerprint.digest);
        serde_json::json!({
            "gateway": &*origin.gateway,
            "request_id": &*origin.request_id,
            "fingerprint": fingerprint.to_string(),
        })
        .to_string()
        .into_bytes()
    }
}

/// What a failed look means: a refusal does not go away, anything else may.
pub(super) fn again(fault: &Fault) -> Step {
    match fault {
        Fault::Refused { refusal: Refusal::Other(error), .. } => {
            Step::Told(Err(LedgerError::Unavailable {
                reason: "the ensemble refuses the request".to_owned(),
                source: Some(Arc::new(error.clone())),
            }))
        }
        Fault::Refused { .. } | Fault::NotSent(_) | Fault::InDoubt(_) => Step::Again,
    }
}
