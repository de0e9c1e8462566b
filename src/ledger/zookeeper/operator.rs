//! What an operator sees of the keys in the ensemble, and how a decision is made.

use std::sync::Arc;

use tokio::time::{Instant, sleep, timeout_at};

use super::{
    ZooKeeper, census,
    client::{Op, Operation},
    core::{Core, closed},
    fault::{Fault, Refusal},
    lock::{Asked, Lock, Place},
    paths::{self, KeyPaths},
    session::Session,
    stored::Found,
};
use crate::{
    domain::{AttemptId, Intent, KeyId, Record, StoredResponse},
    ledger::{
        BoxFuture, DecideError, Ensemble, Entry, LedgerError, ListError, Operator, Page, Query,
        codec::{Stored, encode_readable_record},
    },
};

/// The key's lock, as the lowest in its queue, and the unknown intent under it.
struct Turn {
    session: Arc<Session>,
    paths: KeyPaths,
    lock: Lock,
    intent: Intent,
    version: i32,
}

/// A lock ends with its session, and a session with its gateway: what still has one may be at work.
const NOT_FORCED: &str = "its gateway still has a session with the ensemble, and may be at work; \
                          stop that gateway, after which the key is unknown";

impl Operator for ZooKeeper {
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Page, ListError>> {
        Box::pin(super::list::list(&self.core, query))
    }

    fn show(&self, key: KeyId) -> BoxFuture<'_, Result<Option<Entry>, LedgerError>> {
        Box::pin(async move {
            let session = fresh_session(&self.core, &key).await?;
            look(&self.core, &session, key).await
        })
    }

    fn resolve(
        &self,
        key: KeyId,
        answer: StoredResponse,
    ) -> BoxFuture<'_, Result<Arc<Record>, DecideError>> {
        self.decided(async move |core, turn| resolve(&core, turn, answer).await, key)
    }

    fn release(&self, key: KeyId) -> BoxFuture<'_, Result<(), DecideError>> {
        self.decided(async move |core, turn| release(&core, turn).await, key)
    }

    fn force(&self, key: KeyId) -> BoxFuture<'_, Result<(), DecideError>> {
        Box::pin(async move {
            let session = fresh_session(&self.core, &key).await?;
            Err(match look(&self.core, &session, key).await? {
                None => DecideError::Absent,
                Some(Entry { state, .. }) => match state {
                    crate::ledger::KeyState::InProgress => {
                        DecideError::NotForced { reason: NOT_FORCED }
                    }
                    crate::ledger::KeyState::Unknown => DecideError::NotHeld,
                    crate::ledger::KeyState::Completed => DecideError::Completed,
                },
            })
        })
    }

    fn describe(&self) -> BoxFuture<'_, Ensemble> {
        Box::pin(async {
            let settings = &self.core.settings;
            Ensemble {
                kind: "zookeeper",
                place: format!("{} below {}", settings.servers.join(","), settings.root),
                trouble: self.core.health().err().map(|error| error.to_string()),
                servers: census::look(&self.core).await,
                sessions: census::sessions(&self.core),
            }
        })
    }
}

impl ZooKeeper {
    /// Runs a decision in a task of its own: it is done or undone, whoever waits.
    fn decided<T: Send + 'static, F>(
        &self,
        decide: impl FnOnce(Arc<Core>, Turn) -> F + Send + 'static,
        key: KeyId,
    ) -> BoxFuture<'_, Result<T, DecideError>>
    where
        F: Future<Output = Result<T, DecideError>> + Send + 'static,
    {
        let (done, told) = tokio::sync::oneshot::channel();
        let core = Arc::clone(&self.core);
        self.core.spawn_end(async move {
            let decided = match turn(&core, key).await {
                Ok(turn) => decide(Arc::clone(&core), turn).await,
                Err(error) => Err(error),
            };
            drop(done.send(decided));
        });
        Box::pin(async move { told.await.unwrap_or_else(|_dropped| Err(closed().into())) })
    }
}

/// A session that shows nothing older than this call.
pub(super) async fn fresh_session(core: &Core, key: &KeyId) -> Result<Arc<Session>, LedgerError> {
    if core.closing.is_cancelled() {
        return Err(closed());
    }
    let until = Instant::now() + core.settings.timeout;
    let session = core.sessions.usable_until(key, until).await;
    let session = session.ok_or_else(|| core.unavailable())?;
    match timeout_at(until, session.barrier()).await {
        Ok(true) => Ok(session),
        Ok(false) | Err(_) => Err(core.unavailable()),
    }
}

/// What is known of a key; `None` when it is absent.
pub(super) async fn look(
    core: &Core,
    session: &Session,
    key: KeyId,
) -> Result<Option<Entry>, LedgerError> {
    let paths = core.layout.key(&key);
    let until = Instant::now() + core.settings.timeout;
    while Instant::now() < until {
        let looked = session.client.look(&paths.record, &paths.node).await;
        let looked = looked.map_err(|fault| unavailable(&fault))?;
        let zxid = |found: &Option<(Vec<u8>, zookeeper_client::Stat)>| {
            found.as_ref().map(|(_, stat)| stat.mzxid)
        };
        if zxid(&looked.before) != zxid(&looked.after) {
            continue;
        }
        let Some(found) = looked.after else { return Ok(None) };
        let written_at = core.time().at(found.1.mtime);
        let found = Found::read(found, core.time())?;
        let children = looked.children.unwrap_or_default();
        return Ok(match found.stored {
            Stored::Intent { intent, .. }
                if paths::find_own(&children, intent.attempt_id).is_some() =>
            {
                Some(Entry::in_progress(key, intent))
            }
            _ if found.is_expired => None,
            Stored::Completed(record) => Some(Entry::completed(key, &record)),
            Stored::Intent { intent, .. } => Some(Entry::unknown(key, intent, Some(written_at))),
        });
    }
    Err(core.unavailable())
}

/// Waits for the key's lock, which only an unknown key gives to an operator.
async fn turn(core: &Core, key: KeyId) -> Result<Turn, DecideError> {
    let session = fresh_session(core, &key).await?;
    let paths = core.layout.key(&key);
    match look(core, &session, key).await? {
        None => return Err(DecideError::Absent),
        Some(entry) => undecided(entry.state)?,
    }
    let until = Instant::now() + core.settings.timeout;
    let lock = match Lock::ask(&session, &paths, AttemptId::random(), b"operator").await {
        Asked::Placed(lock) => lock,
        Asked::NoKey => return Err(DecideError::Absent),
        Asked::Failed(fault) => return Err(unavailable(&fault).into()),
    };
    match lowest(core, &session, &paths, &lock, until).await {
        Ok((intent, version, is_told)) => {
            // Until no lease can still cover the attempt that vanished: its gateway may not know
            // yet, and its upstream may still be called.
            if !is_told {
                sleep(session.terms.timeout + session.terms.tick + session.terms.proof()).await;
            }
            Ok(Turn { session, paths, lock, intent, version })
        }
        Err(error) => {
            lock.leave(core).await;
            Err(error)
        }
    }
}

/// The unknown intent, its version and whether its holder itself said that it ended, once nobody
/// is before us.
async fn lowest(
    core: &Core,
    session: &Session,
    paths: &KeyPaths,
    lock: &Lock,
    until: Instant,
) -> Result<(Intent, i32, bool), DecideError> {
    loop {
        match lock.place(paths).await.map_err(|fault| unavailable(&fault))? {
            Place::Lowest(children) => {
                let found = match session.client.get(&paths.record).await {
                    Ok(found) => Found::read(found, core.time())?,
                    Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => {
                        return Err(DecideError::Absent);
                    }
                    Err(fault) => return Err(unavailable(&fault).into()),
                };
                return match found.stored {
                    Stored::Intent { intent, .. }
                        if paths::find_own(&children, intent.attempt_id).is_some() =>
                    {
                        Err(DecideError::InProgress)
                    }
                    _ if found.is_expired => Err(DecideError::Absent),
                    Stored::Completed(_) => Err(DecideError::Completed),
                    Stored::Intent { intent, ended_at } => {
                        Ok((intent, found.version, ended_at.is_some()))
                    }
                };
            }
            Place::Behind(name) => {
                if let Ok(Some(watcher)) = lock.watch(paths, &name).await
                    && timeout_at(until, watcher.changed()).await.is_err()
                {
                    return Err(DecideError::InProgress);
                }
            }
            Place::Gone => return Err(core.unavailable().into()),
        }
    }
}

fn undecided(state: crate::ledger::KeyState) -> Result<(), DecideError> {
    match state {
        crate::ledger::KeyState::Unknown => Ok(()),
        crate::ledger::KeyState::InProgress => Err(DecideError::InProgress),
        crate::ledger::KeyState::Completed => Err(DecideError::Completed),
    }
}

async fn resolve(
    core: &Core,
    turn: Turn,
    answer: StoredResponse,
) -> Result<Arc<Record>, DecideError> {
    let intent = &turn.intent;
    let now = core.time().now();
    let mut record = Record {
        attempt_id: intent.attempt_id,
        attempt: intent.attempt,
        token: intent.token,
        fingerprint: intent.fingerprint.clone(),
        origin: intent.origin.clone(),
        response: answer,
        completed_at: now,
        expires_at: now.after(intent.retention.completed),
    };
    let path = turn.paths.record.clone();
    let change = Op::SetData { path, data: encode_readable_record(&record), version: turn.version };
    let retention = intent.retention.completed;
    let results = store(core, turn, Operation::MultiCommit, change).await?;
    for result in results {
        if let zookeeper_client::MultiWriteResult::SetData { stat } = result {
            record.completed_at = core.time().at(stat.mtime);
            record.expires_at = record.completed_at.after(retention);
        }
    }
    Ok(Arc::new(record))
}

async fn release(core: &Core, turn: Turn) -> Result<(), DecideError> {
    let path = turn.paths.record.clone();
    let change = Op::Delete { path, version: Some(turn.version) };
    store(core, turn, Operation::MultiRelease, change).await.map(drop)
}

/// The decision, in the transaction that lets go of the lock. An empty key node is the sweeper's.
async fn store(
    core: &Core,
    turn: Turn,
    operation: Operation,
    change: Op,
) -> Result<Vec<zookeeper_client::MultiWriteResult>, DecideError> {
    let lock = Op::Delete { path: turn.lock.path.clone(), version: Some(0) };
    turn.lock.live.end();
    match turn.session.transact(operation, vec![lock, change]).await {
        Ok(results) => Ok(results),
        Err(Fault::InDoubt(fault)) => {
            turn.lock.leave(core).await;
            Err(DecideError::NotStored { reason: fault.to_string() })
        }
        Err(fault) => {
            turn.lock.leave(core).await;
            Err(unavailable(&fault).into())
        }
    }
}

pub(super) fn unavailable(fault: &Fault) -> LedgerError {
    LedgerError::Unavailable {
        reason: "the ensemble did not answer as it should".to_owned(),
        source: Some(Arc::new(fault.clone())),
    }
}
