//! One key, seen by the sweeper: counted, or deleted under its lock.

use std::{sync::Arc, time::Duration};

use super::Pass;
use crate::{
    domain::AttemptId,
    ledger::{
        codec::Stored,
        zookeeper::{
            core::Core,
            fault::{Fault, Refusal},
            lock::{Asked, Lock, Place},
            paths::{self, KeyPaths},
            session::Session,
            stored::Found,
            undo::erase,
        },
    },
};

/// After a record's retention: no cache and no lagging server shows a former life any more.
const GRACE: Duration = Duration::from_mins(5);

pub(super) async fn look(
    core: &Core,
    session: &Arc<Session>,
    paths: &KeyPaths,
) -> Result<Pass, Fault> {
    let deleted = Pass { deleted: 1, ..Pass::default() };
    let (data, stat) = match session.client.get(&paths.record).await {
        Ok(found) => found,
        Err(fault) if fault.is_refused_with(&Refusal::NoNode) => {
            // An empty node of any kind; one with children is refused, and stays.
            return match session.client.delete(&paths.node).await {
                Ok(()) => Ok(deleted),
                Err(Fault::Refused { .. }) => Ok(Pass::default()),
                Err(fault) => Err(fault),
            };
        }
        Err(fault) => return Err(fault),
    };
    let bytes = data.len() as u64;
    let Ok(found) = Found::read((data, stat), core.time()) else { return Ok(Pass::default()) };
    if found.is_expired_for(GRACE, core.time()) && expire(core, session, paths).await? {
        return Ok(deleted);
    }
    let mut seen = Pass { bytes, ..Pass::default() };
    match found.stored {
        Stored::Completed(_) => seen.completed += 1,
        Stored::Intent { intent, .. } => {
            let children = session.client.children(&paths.node).await?;
            let is_held = paths::find_own(&children, intent.attempt_id).is_some();
            *(if is_held { &mut seen.in_progress } else { &mut seen.unknown }) += 1;
        }
    }
    Ok(seen)
}

/// Under the key's lock: list, read and judge again.
async fn expire(core: &Core, session: &Arc<Session>, paths: &KeyPaths) -> Result<bool, Fault> {
    let lock = match Lock::ask(session, paths, AttemptId::random(), b"sweeper").await {
        Asked::Placed(lock) => lock,
        Asked::NoKey => return Ok(false),
        Asked::Failed(fault) => return Err(fault),
    };
    // Someone is at work on it: not now.
    let is_lowest = matches!(lock.place(paths).await, Ok(Place::Lowest(_)));
    let version = if is_lowest { still_expired(core, session, paths).await } else { None };
    if let Some(version) = version
        && erase(session, paths, &lock, version).await
    {
        return Ok(true);
    }
    lock.leave(core).await;
    Ok(false)
}

async fn still_expired(core: &Core, session: &Session, paths: &KeyPaths) -> Option<i32> {
    let (data, stat) = session.client.get(&paths.record).await.ok()?;
    let found = Found::read((data, stat), core.time()).ok()?;
    found.is_expired_for(GRACE, core.time()).then_some(found.version)
}
