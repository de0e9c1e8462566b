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

/// At most, between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// How long one wait for a session takes before it is asked for again.
const PATIENCE: Duration = Duration::from_mins(1);

/// What one try came to.
enum Tried {
    Done,
    Again,
}

/// Goes on until it is done or the ledger closes, whoever waits.
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
            () = undoing.closing.cancelled() => {}
        }
    });
}

async fn undo(core: &Arc<Core>, key: KeyId, attempt: AttemptId, former: Option<String>) {
    let paths = core.layout.key(&key);
    loop {
        let until = Instant::now() + PATIENCE;
        let Some(session) = core.sessions.usable_until(&key, until).await else { continue };
        let is_over = match &former {
            Some(former) => is_gone(&session, former).await,
            None => true,
        };
        if !is_over {
            // Until it is gone, a request of the old connection can still be applied.
            sleep(LOOK).await;
            continue;
        }
        match free(core, &session, &paths, attempt).await {
            Tried::Done => return,
            Tried::Again => sleep(jitter(PAUSE)).await,
        }
    }
}

async fn is_gone(session: &Session, path: &str) -> bool {
    session.barrier().await && matches!(session.client.exists(path).await, Ok(None))
}

/// Takes the key's lock like anyone else, and frees the key if it is that attempt's intent.
async fn free(core: &Core, session: &Arc<Session>, paths: &KeyPaths, attempt: AttemptId) -> Tried {
    match read(session, paths).await {
        Ok(Some((Stored::Intent { intent, ended_at: None }, _)))
            if intent.attempt_id == attempt && !intent.may_have_run => {}
        Ok(_) => return Tried::Done,
        Err(_) => return Tried::Again,
    }
    let lock = match Lock::ask(session, paths, AttemptId::random(), b"undo").await {
        Asked::Placed(lock) => lock,
        Asked::NoKey => return Tried::Done,
        Asked::Failed(_) => return Tried::Again,
    };
    loop {
        match lock.place(paths).await {
            Ok(Place::Lowest(_)) => break,
            Ok(Place::Behind(name)) => {
                if let Ok(Some(watcher)) = lock.watch(paths, &name).await {
                    tokio::select! {
                        _ = watcher.changed() => {}
                        () = session.lost.cancelled() => return Tried::Again,
                    }
                }
            }
            Ok(Place::Gone) | Err(_) => {
                lock.leave(core).await;
                return Tried::Again;
            }
        }
    }
    let version = match read(session, paths).await {
        Ok(Some((Stored::Intent { intent, ended_at: None }, version)))
            if intent.attempt_id == attempt =>
        {
            version
        }
        Ok(_) => {
            lock.leave(core).await;
            return Tried::Done;
        }
        Err(_) => {
            lock.leave(core).await;
            return Tried::Again;
        }
    };
    if erase(session, paths, &lock, version).await {
        return Tried::Done;
    }
    lock.leave(core).await;
    Tried::Again
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
        Op::Delete { path: lock.path.clone(), version: Some(0) },
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
