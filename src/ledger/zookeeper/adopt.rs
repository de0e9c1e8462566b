//! Takes the intent of a call that was left to finish under another session.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use zookeeper_client::MultiWriteResult;

use super::{
    client::{ANY, Op, Operation},
    core::Core,
    fault::{Fault, Refusal},
    held::HeldKey,
    lock::{Asked, Lock, Place},
    paths::KeyPaths,
    session::Session,
    sessions::jitter,
};
use crate::{
    domain::{AttemptId, Intent},
    ledger::{
        EndError, Gate, Hold,
        codec::{Stored, encode_readable_intent},
    },
};

/// At most, between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// How long one wait for a session takes before it is asked for again.
const PATIENCE: Duration = Duration::from_mins(1);

/// What one try came to.
enum Tried {
    Adopted(Box<(Lock, Intent, i32)>),
    /// The record is not the attempt's intent any more.
    Lost,
    Again,
}

/// Goes on until the key is taken, or is another's.
pub(super) async fn adopt(held: HeldKey, gate: Gate) -> Result<Hold, EndError> {
    let HeldKey { core, key, paths, lock, intent, earlier_cause, .. } = held;
    // The former session ends only once none of its attempts is left.
    drop(lock);
    // A try whose reply is lost may have written its own name.
    let mut ours = vec![intent.attempt_id];
    loop {
        let until = Instant::now() + PATIENCE;
        let Some(session) = core.sessions.usable_until(&key, until).await else { continue };
        match take(&core, &session, &paths, &intent, &mut ours).await {
            Tried::Adopted(adopted) => {
                let (mut lock, intent, version) = *adopted;
                lock.count(&intent.origin.route);
                let queued = true;
                let held =
                    HeldKey { core, key, paths, lock, intent, version, earlier_cause, queued };
                return Ok(held.into_hold_behind(gate));
            }
            Tried::Lost => return Err(EndError::LockLost),
            Tried::Again => sleep(jitter(PAUSE)).await,
        }
    }
}

async fn take(
    core: &Core,
    session: &Arc<Session>,
    paths: &KeyPaths,
    intent: &Intent,
    ours: &mut Vec<AttemptId>,
) -> Tried {
    let lock = match Lock::ask(session, paths, AttemptId::random(), b"settle").await {
        Asked::Placed(lock) => lock,
        Asked::NoKey => return Tried::Lost,
        Asked::Failed(_) => return Tried::Again,
    };
    ours.push(lock.live.attempt());
    let tried = match wait_for_turn(session, paths, &lock).await {
        Ok(()) => write(session, paths, &lock, intent, ours).await,
        Err(()) => Err(Tried::Again),
    };
    match tried {
        Ok((intent, version)) => Tried::Adopted(Box::new((lock, intent, version))),
        Err(tried) => {
            lock.leave(core).await;
            tried
        }
    }
}

async fn wait_for_turn(session: &Session, paths: &KeyPaths, lock: &Lock) -> Result<(), ()> {
    loop {
        match lock.place(paths).await {
            Ok(Place::Lowest(_)) => return Ok(()),
            Ok(Place::Behind(name)) => {
                tokio::select! {
                    () = lock.wait_behind(paths, &name) => {}
                    () = session.lost.cancelled() => return Err(()),
                }
            }
            Ok(Place::Gone) => return Err(()),
            Err(_) if session.lost.is_cancelled() => return Err(()),
            Err(_) => sleep(jitter(PAUSE)).await,
        }
    }
}

/// Only for the lowest. The token and the number of the attempt stay.
async fn write(
    session: &Session,
    paths: &KeyPaths,
    lock: &Lock,
    intent: &Intent,
    ours: &[AttemptId],
) -> Result<(Intent, i32), Tried> {
    let adopted = Intent { attempt_id: lock.live.attempt(), ..intent.clone() };
    let data = encode_readable_intent(&adopted, None);
    while !session.lost.is_cancelled() {
        let version = match session.client.get(&paths.record).await {
            Ok((data, stat)) => match Stored::decode(&data.into()) {
                Ok(Stored::Intent { intent, ended_at: None })
                    if intent.attempt_id == adopted.attempt_id =>
                {
                    return Ok((adopted, stat.version));
                }
                Ok(Stored::Intent { intent, ended_at: None })
                    if ours.contains(&intent.attempt_id) =>
                {
                    stat.version
                }
                Ok(_) | Err(_) => return Err(Tried::Lost),
            },
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => return Err(Tried::Lost),
            Err(_) => {
                sleep(jitter(PAUSE)).await;
                continue;
            }
        };
        let ops = vec![
            Op::Check { path: lock.path.clone(), version: ANY },
            Op::SetData { path: paths.record.clone(), data: data.clone(), version },
        ];
        match session.transact(Operation::MultiTakeover, ops).await {
            Ok(results) => {
                if let Some(MultiWriteResult::SetData { stat }) = results.get(1) {
                    return Ok((adopted, stat.version));
                }
            }
            Err(Fault::Refused { index: 0, .. }) => return Err(Tried::Again),
            Err(Fault::InDoubt(_)) => {
                session.barrier().await;
            }
            Err(Fault::Refused { .. } | Fault::NotSent(_)) => sleep(jitter(PAUSE)).await,
        }
    }
    Err(Tried::Again)
}
