//! Deletes what has expired: one gateway at a time, by the servers' time, at a bounded rate.

mod look;

use std::{sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use self::look::look;
use super::{
    core::Core,
    fault::{Fault, Refusal},
    paths::{self, KeyPaths, Layout, Sequence},
    session::Session,
    time::MOST_DRIFT,
};
use crate::telemetry;

/// Before the first pass, and between looks whether this gateway is elected.
const LOOK: Duration = Duration::from_secs(10);

/// Keys that are looked at at once: one that expired costs five round trips, two of them writes.
const AT_ONCE: usize = 16;

/// What a pass has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) in_progress: u64,
    pub(super) completed: u64,
    pub(super) unknown: u64,
    pub(super) bytes: u64,
    pub(super) deleted: u64,
}

/// The keys that are looked at just now, and what was seen of the others.
#[derive(Debug, Default)]
struct Looks {
    tasks: JoinSet<Result<Pass, Fault>>,
    seen: Pass,
}

// === impl Looks ===

impl Looks {
    async fn end_one(&mut self) -> Result<(), Fault> {
        if let Some(Ok(look)) = self.tasks.join_next().await {
            self.seen.add(look?);
        }
        Ok(())
    }
}

// === impl Pass ===

impl Pass {
    fn add(&mut self, other: Self) {
        self.in_progress += other.in_progress;
        self.completed += other.completed;
        self.unknown += other.unknown;
        self.bytes += other.bytes;
        self.deleted += other.deleted;
    }
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

async fn run(core: &Arc<Core>) {
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
            telemetry::record_stored(&telemetry::Stored::default());
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

/// Looks at every key once.
pub(super) async fn pass(core: &Arc<Core>, session: &Arc<Session>) -> Result<Pass, Fault> {
    let mut looks = Looks::default();
    let walked = walk(core, session, &mut looks).await;
    // None is left half done: its lock would stay for a while.
    let mut ended = Ok(());
    while !looks.tasks.is_empty() {
        ended = ended.and(looks.end_one().await);
    }
    let is_whole = walked?;
    ended?;
    let seen = looks.seen;
    if is_whole {
        telemetry::record_stored(&telemetry::Stored {
            in_progress: seen.in_progress,
            completed: seen.completed,
            unknown: seen.unknown,
            bytes: seen.bytes,
        });
        tracing::info!(?seen, "swept");
    }
    Ok(seen)
}

/// Shard by shard; false if it stopped before the last.
async fn walk(core: &Arc<Core>, session: &Arc<Session>, looks: &mut Looks) -> Result<bool, Fault> {
    let mut ticks = interval(Duration::from_secs(1) / core.settings.sweep.rate.max(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..Layout::SHARDS {
        let drift = core.time().drift();
        if drift > MOST_DRIFT {
            telemetry::sweep_stopped(true);
            tracing::error!(?drift, "wall clock left the servers' time, sweeping stopped");
            return Ok(false);
        }
        telemetry::sweep_stopped(false);
        let shard = core.layout.shard(number);
        let keys = match session.client.children(&shard).await {
            Ok(keys) => keys,
            Err(fault) if fault.is_refused_with(&Refusal::NoNode) => continue,
            Err(fault) => return Err(fault),
        };
        for key in keys {
            ticks.tick().await;
            if looks.tasks.len() == AT_ONCE {
                looks.end_one().await?;
            }
            let paths = KeyPaths::at(format!("{shard}/{key}"), shard.clone());
            let (core, session) = (Arc::clone(core), Arc::clone(session));
            looks.tasks.spawn(async move { look(&core, &session, &paths).await });
        }
    }
    Ok(true)
}
