//! In the queue for a key's lock: wait for the one before, and decide once nobody is.

use std::sync::Arc;

use tokio::time::{sleep, sleep_until};
use zookeeper_client::{MultiWriteResult, Stat};

use super::{
    PAUSE, Seeker, Step, Taken, again,
    judge::{Opening, Verdict, judge},
};
use crate::{
    domain::{AttemptId, Intent},
    ledger::{
        Begun, LedgerError,
        codec::{Stored, encode_readable_intent},
        zookeeper::{
            client::{ANY, Op, Operation},
            fault::{Fault, Refusal},
            lock::{Asked, Lock, Place},
            paths,
            session::Session,
            sessions::jitter,
            stored::{Found, token},
            turns::Turn,
            undo,
        },
    },
    telemetry::ensemble,
};

/// How a wait for the node before ours ended.
enum Waited {
    Changed,
    /// The caller's time is over, or the caller is gone.
    Enough,
    SessionLost,
}

/// What came of trying to write the intent.
enum Written {
    Owned(Stat),
    /// The lock is not ours.
    LockLost,
    /// For reasons that do not go away.
    Refused(Fault),
    /// Look at the key again.
    Judge,
    SessionLost,
}

// === impl Seeker ===

impl Seeker<'_> {
    pub(super) async fn contend(&mut self, session: &Arc<Session>, turn: Turn) -> Step {
        if let Err(overloaded) = session.has_room() {
            return Step::Told(Err(overloaded));
        }
        let attempt = AttemptId::random();
        let mut lock = match Lock::ask(session, self.paths, attempt, &self.lock_data()).await {
            Asked::Placed(lock) => lock,
            Asked::NoKey => return Step::Again,
            Asked::Failed(_) if session.lost.is_cancelled() => {
                return Step::Told(Err(LedgerError::SessionLost));
            }
            Asked::Failed(fault) => return again(&fault),
        };
        lock.count(&self.request.origin.route);
        if let Some(observer) = &self.request.observer {
            observer.queued(&lock.for_log(true));
        }
        let mut was_woken = false;
        loop {
            let place = lock.place(self.paths).await;
            if was_woken && matches!(place, Ok(Place::Lowest(_))) {
                ensemble::lock_inherited(&self.request.origin.route);
                was_woken = false;
            }
            let behind = match place {
                Ok(Place::Lowest(children)) => match self.decide(&lock, &children).await {
                    Decided::Told(begun) => {
                        lock.leave(self.core).await;
                        return Step::Told(begun);
                    }
                    Decided::Open(opening) => match self.write(&lock, &opening).await {
                        Written::Owned(stat) => return self.owned(lock, &opening, stat),
                        Written::LockLost => {
                            lock.leave(self.core).await;
                            return Step::Again;
                        }
                        Written::Refused(fault) => {
                            lock.leave(self.core).await;
                            return again(&fault);
                        }
                        Written::Judge => continue,
                        Written::SessionLost => {
                            undo::start(self.core, self.request.key, lock.live);
                            return Step::Told(Err(LedgerError::SessionLostBeginning));
                        }
                    },
                    Decided::Behind(name) => name,
                    Decided::Again => {
                        if session.lost.is_cancelled() {
                            return Step::Told(Err(LedgerError::SessionLost));
                        }
                        sleep(jitter(PAUSE)).await;
                        continue;
                    }
                },
                Ok(Place::Behind(name)) => name,
                Ok(Place::Gone) => {
                    return Step::Told(Err(LedgerError::Unavailable {
                        reason: "the node in the queue for the lock vanished".to_owned(),
                        source: None,
                    }));
                }
                Err(_) if session.lost.is_cancelled() => {
                    return Step::Told(Err(LedgerError::SessionLost));
                }
                Err(_) => {
                    sleep(jitter(PAUSE)).await;
                    continue;
                }
            };
            if self.request.wait_until.is_none() {
                lock.leave(self.core).await;
                return Step::Told(Ok(Begun::InProgress));
            }
            let room = session.watch_room(self.paths.child(&behind).len());
            let watching = match room {
                Ok(watching) => watching,
                Err(overloaded) => {
                    lock.leave(self.core).await;
                    return Step::Told(Err(overloaded));
                }
            };
            turn.queue();
            let waited = self.wait_behind(&lock, &behind).await;
            drop(watching);
            match waited {
                Waited::Changed => was_woken = true,
                Waited::Enough => {
                    lock.leave(self.core).await;
                    return Step::Told(Ok(Begun::InProgress));
                }
                Waited::SessionLost => return Step::Told(Err(LedgerError::SessionLost)),
            }
        }
    }

    /// Until the node before ours changes, and never longer than the caller wants.
    async fn wait_behind(&mut self, lock: &Lock, name: &str) -> Waited {
        let lost = lock.session().lost.clone();
        let until = self.request.wait_until.unwrap_or(self.patience);
        let event = async {
            match lock.watch(self.paths, name).await {
                Ok(Some(watcher)) => {
                    watcher.changed().await;
                    ensemble::watch_notified(self.core.layout.root());
                    if let Some(observer) = &self.request.observer {
                        observer.woken(&lock.for_log(true));
                    }
                }
                // Gone already.
                Ok(None) => {}
                Err(_) => sleep(jitter(PAUSE)).await,
            }
        };
        let waited = tokio::select! {
            biased;
            () = lost.cancelled() => Waited::SessionLost,
            () = event => Waited::Changed,
            () = sleep_until(until) => Waited::Enough,
            () = self.caller.closed() => Waited::Enough,
            () = self.core.closing.cancelled() => Waited::Enough,
        };
        self.be_patient();
        waited
    }

    /// Only for the lowest: nobody else can change the record any more. It is read *after* the
    /// list that showed it.
    async fn decide(&self, lock: &Lock, children: &[String]) -> Decided {
        let found = match lock.session().client.get(&self.paths.record).await {
            Ok(found) => match Found::read(found, self.core.time()) {
                Ok(found) => Some(found),
                Err(unreadable) => return Decided::Told(Err(unreadable)),
            },
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => None,
            Err(_) => return Decided::Again,
        };
        match judge(self.request, children, found.as_ref()).told() {
            Ok(begun) => Decided::Told(Ok(begun)),
            Err(Verdict::Held(holder)) => match paths::find_own(children, holder) {
                Some(name) => Decided::Behind(name.to_owned()),
                None => Decided::Again,
            },
            Err(Verdict::Open(opening)) => Decided::Open(opening),
            Err(Verdict::Replay(_) | Verdict::Mismatch(_) | Verdict::Unknown(_)) => Decided::Again,
        }
    }

    /// The intent, in a transaction that names our lock.
    async fn write(&self, lock: &Lock, opening: &Opening) -> Written {
        let intent = self.intent(lock.live.attempt(), opening);
        let data = encode_readable_intent(&intent, None);
        let path = self.paths.record.clone();
        let change = match opening.replaces {
            Some(version) => Op::SetData { path, data, version },
            None => Op::Create { path, data },
        };
        let ops = vec![Op::Check { path: lock.path.clone(), version: ANY }, change];
        match lock.session().transact(Operation::MultiTakeover, ops).await {
            Ok(results) => match results.get(1) {
                Some(MultiWriteResult::SetData { stat }) => Written::Owned(*stat),
                // The stat of a create in a transaction is not to be had from servers before
                // 3.8.2.
                _ => self.find_written(lock).await,
            },
            Err(Fault::Refused { index: 0, refusal: Refusal::NoNode }) => Written::LockLost,
            Err(fault @ Fault::Refused { refusal: Refusal::Other(_), .. }) => {
                Written::Refused(fault)
            }
            Err(Fault::Refused { .. } | Fault::NotSent(_)) => {
                if lock.session().lost.is_cancelled() { Written::LockLost } else { Written::Judge }
            }
            Err(Fault::InDoubt(_)) => {
                if lock.session().barrier().await {
                    self.find_written(lock).await
                } else {
                    Written::SessionLost
                }
            }
        }
    }

    /// Whether the record is our intent.
    async fn find_written(&self, lock: &Lock) -> Written {
        while !lock.session().lost.is_cancelled() {
            match lock.session().client.get(&self.paths.record).await {
                Ok((data, stat)) => {
                    let is_ours = matches!(
                        Stored::decode(&data.into()),
                        Ok(Stored::Intent { intent, .. })
                            if intent.attempt_id == lock.live.attempt()
                    );
                    return if is_ours { Written::Owned(stat) } else { Written::Judge };
                }
                Err(Fault::Refused { .. }) => return Written::Judge,
                Err(_) => {}
            }
        }
        Written::SessionLost
    }

    fn owned(&self, lock: Lock, opening: &Opening, stat: Stat) -> Step {
        let intent = self.intent(lock.live.attempt(), opening);
        let intent = Intent { token: token(stat.mzxid), ..intent };
        let taken = Taken { earlier_cause: opening.earlier_cause };
        self.own(lock, intent, stat.version, Some(taken))
    }
}

/// What the lowest in the queue finds.
enum Decided {
    Told(Result<Begun, LedgerError>),
    Open(Opening),
    /// A live attempt has the key although its node is behind ours.
    Behind(String),
    Again,
}
