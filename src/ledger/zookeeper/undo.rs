//! Frees the key of an attempt that never reached the upstream and whose session is gone.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{
    client::{Op, Operation},
    core::Core,
    fault::{Fault, Refusal},
    lock::{Asked, Lock, Place},
    paths::KeyPaths,
    session::{Live, Session},
    sessions::jitter,
};
use crate::{
    domain::{AttemptId, KeyId},
    ledger::codec::Stored,
};

/// How often the end of the former session is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// The same, once the lock is ours: its lock went with the former session, so its end is near.
const SOON: Duration = Duration::from_millis(50);

/// At most, between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// How long one wait for a session takes before it is asked for again.
const PATIENCE: Duration = Duration::from_mins(1);

/// What one try came to.
enum Tried {
    Done,
    Again,
}

/// Goes on until it is done or the sessions end, whoever waits.
pub(super) fn start(core: &Arc<Core>, key: KeyId, live: Live) {
    let (attempt, former) = (live.attempt(), live.session().heartbeat_path.clone());
    // By its lease, which may be over a moment before anyone is told.
    let former = (!live.session().is_leased()).then_some(former);
    // The session may not wait for this: it must end first.
    drop(live);
    let undoing = Arc::clone(core);
    core.spawn_end(async move {
        tokio::select! {
            () = undo(&undoing, key, attempt, former) => {}
            () = undoing.sessions.closing() => {}
        }
    });
}

async fn undo(core: &Arc<Core>, key: KeyId, attempt: AttemptId, former: Option<String>) {
    let paths = core.layout.key(&key);
    loop {
        let until = Instant::now() + PATIENCE;
        let Some(session) = core.sessions.usable_until(&key, until).await else { continue };
        match free(core, &session, &paths, attempt, former.as_deref()).await {
            Tried::Done => return,
            Tried::Again => sleep(jitter(PAUSE)).await,
        }
    }
}

/// Whether nothing of the former session can be applied any more.
async fn is_over(session: &Session, former: Option<&str>) -> bool {
    let Some(former) = former else { return true };
    session.barrier().await && matches!(session.client.exists(former).await, Ok(None))
}

/// Takes the key's lock like anyone else, and frees the key if it is that attempt's intent.
async fn free(
    core: &Core,
    session: &Arc<Session>,
    paths: &KeyPaths,
    attempt: AttemptId,
    former: Option<&str>,
) -> Tried {
    let is_over_before = is_over(session, former).await;
    match read(session, paths).await {
        Ok(Some((stored, _))) if is_to_be_freed(&stored, attempt) => {}
        Ok(_) if is_over_before => return Tried::Done,
        // The intent may still be written.
        Ok(_) => {
            sleep(LOOK).await;
            return Tried::Again;
        }
        Err(_) => return Tried::Again,
    }
    // At once: a retry that comes now stands behind, and finds the key free.
    let lock = match Lock::ask(session, paths, AttemptId::random(), b"undo").await {
        Asked::Placed(lock) => lock,
        Asked::NoKey | Asked::Failed(_) => return Tried::Again,
    };
    let tried = match when_lowest(session, paths, &lock, former).await {
        Ok(()) => match read(session, paths).await {
            Ok(Some((stored, version))) if is_to_be_freed(&stored, attempt) => {
                if erase(session, paths, &lock, version).await {
                    return Tried::Done;
                }
                Tried::Again
            }
            Ok(_) => Tried::Done,
            Err(_) => Tried::Again,
        },
        Err(()) => Tried::Again,
    };
    lock.leave(core).await;
    tried
}

/// Until nobody else can change the record: neither those before us nor the former session.
async fn when_lowest(
    session: &Session,
    paths: &KeyPaths,
    lock: &Lock,
    former: Option<&str>,
) -> Result<(), ()> {
    loop {
        match lock.place(paths).await {
            Ok(Place::Lowest(_)) => break,
            Ok(Place::Behind(name)) => {
                tokio::select! {
                    () = lock.wait_behind(paths, &name) => {}
                    () = session.lost.cancelled() => return Err(()),
                }
            }
            Ok(Place::Gone) | Err(_) => return Err(()),
        }
    }
    while !is_over(session, former).await {
        if session.lost.is_cancelled() {
            return Err(());
        }
        sleep(SOON).await;
    }
    Ok(())
}

/// Whether it is the intent of this attempt, and no attempt of the key may have run.
fn is_to_be_freed(stored: &Stored, attempt: AttemptId) -> bool {
    matches!(
        stored,
        Stored::Intent { intent, ended_at: None }
            if intent.attempt_id == attempt && !intent.may_have_run
    )
}

async fn read(session: &Session, paths: &KeyPaths) -> Result<Option<(Stored, i32)>, Fault> {
    match session.client.get(&paths.record).await {
        // What cannot be read is nobody's intent.
        Ok((data, stat)) => {
            Ok(Stored::decode(&data.into()).ok().map(|stored| (stored, stat.version)))
        }
        Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Lock, record and, if nobody waits, the key's node, in one transaction. Only for the lowest.
pub(super) async fn erase(session: &Session, paths: &KeyPaths, lock: &Lock, version: i32) -> bool {
    let mut ops = vec![
        Op::Delete { path: lock.path.clone(), version: None },
        Op::Delete { path: paths.record.clone(), version: Some(version) },
        Op::Delete { path: paths.node.clone(), version: None },
    ];
    match session.transact(Operation::MultiExpire, ops.clone()).await {
        Ok(_) => true,
        Err(Fault::Refused { index: 2, .. }) => {
            ops.pop();
            session.transact(Operation::MultiExpire, ops).await.is_ok()
        }
        Err(_) => false,
    }
}
