//! From a request for a key's lock to the hold, or to why not.

mod contend;
mod fresh;
mod judge;
mod look;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};

use self::judge::Opening;
use super::{
    core::{Core, closed},
    fault::{Fault, Refusal},
    held::HeldKey,
    lock::Lock,
    paths::KeyPaths,
    sessions::jitter,
    stored::UNSTAMPED,
};
use crate::{
    domain::{AttemptId, Cause, Intent, KeyId},
    ledger::{Begin, Begun, LedgerError},
};

/// What one look at a key came to.
enum Step {
    Told(Result<Begun, LedgerError>),
    /// Something changed meanwhile, or a reply is missing.
    Again,
}

/// One request on its way to the key's lock.
struct Seeker<'a> {
    core: &'a Arc<Core>,
    request: &'a Begin,
    paths: &'a KeyPaths,
    caller: &'a mut oneshot::Sender<Result<Begun, LedgerError>>,
    /// Until when the ensemble may make the caller wait; a live holder's time is not counted.
    patience: Instant,
}

/// How a lock was come by that stood in the queue.
struct Taken {
    earlier_cause: Option<Cause>,
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

    /// A holder's time is not the ensemble's.
    fn be_patient(&mut self) {
        self.patience = Instant::now() + self.core.settings.timeout;
    }

    fn own(&self, mut lock: Lock, intent: Intent, version: i32, taken: Option<Taken>) -> Step {
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

    fn intent(&self, attempt_id: AttemptId, opening: &Opening) -> Intent {
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
    fn lock_data(&self) -> Vec<u8> {
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
fn again(fault: &Fault) -> Step {
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
