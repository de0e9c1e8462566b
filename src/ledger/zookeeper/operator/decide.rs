//! Decisions about keys whose outcome is unknown, each under the key's own lock.

use std::sync::Arc;

use tokio::time::{Instant, sleep, timeout_at};
use zookeeper_client::MultiWriteResult;

use super::{fresh_session, look, unavailable};
use crate::{
    domain::{AttemptId, Intent, KeyId, Record, StoredResponse},
    ledger::{
        DecideError, KeyState,
        codec::{Stored, encode_readable_record},
        zookeeper::{
            client::{Op, Operation},
            core::Core,
            fault::{Fault, Refusal},
            lock::{Asked, Lock, Place},
            paths::{self, KeyPaths},
            session::Session,
            stored::Found,
        },
    },
};

/// The key's lock, as the lowest in its queue, and the unknown intent under it.
pub(super) struct Turn {
    session: Arc<Session>,
    paths: KeyPaths,
    lock: Lock,
    intent: Intent,
    version: i32,
}

/// Waits for the key's lock, which only an unknown key gives to an operator.
pub(super) async fn turn(core: &Core, key: KeyId) -> Result<Turn, DecideError> {
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
                // A holder is not waited for: it may take as long as its upstream.
                if is_holder(session, paths, &name).await {
                    return Err(DecideError::InProgress);
                }
                if timeout_at(until, lock.wait_behind(paths, &name)).await.is_err() {
                    return Err(DecideError::InProgress);
                }
            }
            Place::Gone => return Err(core.unavailable().into()),
        }
    }
}

/// Whether this node is the lock of the attempt that the record tells of.
async fn is_holder(session: &Session, paths: &KeyPaths, name: &str) -> bool {
    let Ok((data, _)) = session.client.get(&paths.record).await else { return false };
    match Stored::decode(&data.into()) {
        Ok(Stored::Intent { intent, .. }) => {
            paths::find_own(&[name.to_owned()], intent.attempt_id).is_some()
        }
        Ok(Stored::Completed(_)) | Err(_) => false,
    }
}

fn undecided(state: KeyState) -> Result<(), DecideError> {
    match state {
        KeyState::Unknown => Ok(()),
        KeyState::InProgress => Err(DecideError::InProgress),
        KeyState::Completed => Err(DecideError::Completed),
    }
}

pub(super) async fn resolve(
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
        if let MultiWriteResult::SetData { stat } = result {
            record.completed_at = core.time().at(stat.mtime);
            record.expires_at = record.completed_at.after(retention);
        }
    }
    Ok(Arc::new(record))
}

pub(super) async fn release(core: &Core, turn: Turn) -> Result<(), DecideError> {
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
) -> Result<Vec<MultiWriteResult>, DecideError> {
    let lock = Op::Delete { path: turn.lock.path.clone(), version: None };
    let ops = vec![lock, change];
    turn.lock.live.end();
    let mut in_doubt = None;
    loop {
        match (turn.session.transact(operation, ops.clone()).await, in_doubt.take()) {
            (Ok(results), _) => return Ok(results),
            // Nobody else deletes this lock while its session lives: the first one was applied.
            (Err(Fault::Refused { index: 0, refusal: Refusal::NoNode }), Some(_))
                if turn.lock.live.is_leased() =>
            {
                return Ok(Vec::new());
            }
            (Err(Fault::InDoubt(fault)), _) if turn.session.barrier().await => {
                in_doubt = Some(fault);
            }
            (Err(Fault::InDoubt(fault)), _) | (Err(_), Some(fault)) => {
                turn.lock.leave(core).await;
                return Err(DecideError::NotStored { reason: fault.to_string() });
            }
            (Err(fault), None) => {
                turn.lock.leave(core).await;
                return Err(unavailable(&fault).into());
            }
        }
    }
}
