//! Deletes what has expired: one gateway at a time, by the servers' time, at a bounded rate.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{
    core::Core,
    fault::{Fault, Refusal},
    lock::{Asked, Lock, Place},
    paths::{self, KeyPaths, Layout, Sequence},
    session::Session,
    stored::Found,
    time::MOST_DRIFT,
    undo::erase,
};
use crate::{
    domain::AttemptId,
    ledger::codec::Stored,
    telemetry::{self, Stored as Counted},
};

/// After a record's retention: no cache and no lagging server shows a former life any more.
const GRACE: Duration = Duration::from_mins(5);

/// Before the first pass, and between looks whether this gateway is elected.
const LOOK: Duration = Duration::from_secs(10);

/// What a pass has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) in_progress: u64,
    pub(super) completed: u64,
    pub(super) unknown: u64,
    pub(super) bytes: u64,
    pub(super) deleted: u64,
}

pub(super) fn start(core: &Arc<Core>, runtime: &tokio::runtime::Handle) {
    let core = Arc::clone(core);
    drop(runtime.spawn(async move {
        tokio::select! {
            () = run(&core) => {}
            () = core.closing.cancelled() => {}
        }
    }));
}

async fn run(core: &Core) {
    let (mut was_elected, mut next) = (false, Instant::now());
    loop {
        sleep(LOOK).await;
        let elected = elected(core).await;
        if let Some(session) = &elected {
            if Instant::now() >= next {
                if let Err(fault) = pass(core, session).await {
                    tracing::warn!(%fault, "sweeping was interrupted");
                }
                next = Instant::now() + core.settings.sweep.interval;
            }
        } else if was_elected {
            // Another one tells now: the sum over all gateways must be right.
            telemetry::record_stored(&Counted::default());
            telemetry::sweep_stopped(false);
        }
        was_elected = elected.is_some();
    }
}

/// The session to sweep under, if this gateway is the one to sweep.
async fn elected(core: &Core) -> Option<Arc<Session>> {
    let candidate = core.sessions.all().into_iter().find(|session| session.candidate.is_some());
    let session = candidate.filter(|session| session.is_leased())?;
    let node = session.candidate.clone()?;
    match is_elected(core, &session, &node).await {
        Ok(is_elected) => is_elected.then_some(session),
        Err(fault) => {
            tracing::debug!(%fault, "the election of the sweeper is not known");
            None
        }
    }
}

/// Whether our node is the lowest; an error if it is not there.
async fn is_elected(core: &Core, session: &Session, node: &str) -> Result<bool, Fault> {
    let all = session.client.children(&core.layout.gateways()).await?;
    let standing = all.iter().filter_map(|name| Some((Sequence::of_candidate(name)?, name)));
    let own = paths::name_of(node);
    let Some(sequence) = Sequence::of_candidate(own).filter(|_| all.iter().any(|n| n == own))
    else {
        return Err(Fault::Refused { index: 0, refusal: Refusal::NoNode });
    };
    let is_before = |other: Sequence| sequence.is_behind(other);
    let mut others = standing;
    Ok(!others.any(|(other, _)| is_before(other)))
}

/// Looks at every key once, shard by shard.
pub(super) async fn pass(core: &Core, session: &Arc<Session>) -> Result<Pass, Fault> {
    let mut seen = Pass::default();
    let pause = Duration::from_secs(1) / core.settings.sweep.rate.max(1);
    for number in 0..Layout::SHARDS {
        let drift = core.time().drift();
        if drift > MOST_DRIFT {
            telemetry::sweep_stopped(true);
            tracing::error!(?drift, "wall clock left the servers' time, sweeping stopped");
            return Ok(seen);
        }
        telemetry::sweep_stopped(false);
        let shard = core.layout.shard(number);
        let keys = match session.client.children(&shard).await {
            Ok(keys) => keys,
            Err(fault) if fault.is_refused_with(&Refusal::NoNode) => continue,
            Err(fault) => return Err(fault),
        };
        for key in keys {
            let paths = KeyPaths::at(format!("{shard}/{key}"), shard.clone());
            look(core, session, &paths, &mut seen).await?;
            sleep(pause).await;
        }
    }
    telemetry::record_stored(&Counted {
        in_progress: seen.in_progress,
        completed: seen.completed,
        unknown: seen.unknown,
        bytes: seen.bytes,
    });
    tracing::info!(?seen, "swept");
    Ok(seen)
}

async fn look(
    core: &Core,
    session: &Arc<Session>,
    paths: &KeyPaths,
    seen: &mut Pass,
) -> Result<(), Fault> {
    let (data, stat) = match session.client.get(&paths.record).await {
        Ok(found) => found,
        Err(fault) if fault.is_refused_with(&Refusal::NoNode) => {
            // An empty node of any kind; one with children is refused, and stays.
            return match session.client.delete(&paths.node).await {
                Ok(()) => {
                    seen.deleted += 1;
                    Ok(())
                }
                Err(Fault::Refused { .. }) => Ok(()),
                Err(fault) => Err(fault),
            };
        }
        Err(fault) => return Err(fault),
    };
    let bytes = data.len() as u64;
    let Ok(found) = Found::read((data, stat), core.time()) else { return Ok(()) };
    if found.is_expired_for(GRACE, core.time()) && expire(core, session, paths).await? {
        seen.deleted += 1;
        return Ok(());
    }
    seen.bytes += bytes;
    match found.stored {
        Stored::Completed(_) => seen.completed += 1,
        Stored::Intent { intent, .. } => {
            let children = session.client.children(&paths.node).await?;
            let is_held = paths::find_own(&children, intent.attempt_id).is_some();
            *(if is_held { &mut seen.in_progress } else { &mut seen.unknown }) += 1;
        }
    }
    Ok(())
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
