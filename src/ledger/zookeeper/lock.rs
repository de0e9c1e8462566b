//! A place in the queue for one key's lock, and how it is kept through lost replies.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use zookeeper_client::{CreateMode, OneshotWatcher};

use super::{
    core::Core,
    fault::{Fault, Refusal},
    paths::{self, KeyPaths, Sequence},
    session::{Live, Session},
};
use crate::{domain::AttemptId, ledger::LockPlace, telemetry::ensemble::LiveLock};

/// Our node among the contenders for a key.
#[derive(Debug)]
pub(super) struct Lock {
    pub(super) live: Live,
    pub(super) path: String,
    sequence: Sequence,
    /// Counts the node under its route.
    counted: Option<LiveLock>,
}

/// What came of asking for a place.
#[derive(Debug)]
pub(super) enum Asked {
    Placed(Lock),
    /// The key has no node: it was reaped.
    NoKey,
    /// The session is over, or the server refuses.
    Failed(Fault),
}

/// Where a lock stands.
#[derive(Debug)]
pub(super) enum Place {
    /// The first of all, which is stable. These are the key's nodes.
    Lowest(Vec<String>),
    /// Whose end is waited for.
    Behind(String),
    /// Our node is not there.
    Gone,
}

/// Between repetitions of a request that may not be given up.
const PAUSE: Duration = Duration::from_millis(50);

/// Between looks at a node for whose watch there is no room.
const UNWATCHED: Duration = Duration::from_secs(1);

// === impl Lock ===

impl Lock {
    pub(super) fn new(live: Live, path: String) -> Option<Self> {
        let sequence = Sequence::of(paths::name_of(&path))?;
        live.establish();
        Some(Self { live, path, sequence, counted: None })
    }

    /// Creates the node. A lost reply is cleared up: the node is found again, or surely not there.
    pub(super) async fn ask(
        session: &Arc<Session>,
        paths: &KeyPaths,
        attempt: AttemptId,
        data: &[u8],
    ) -> Asked {
        let live = session.enter(attempt);
        let prefix = paths.lock_prefix(attempt);
        loop {
            let created =
                session.client.create(&prefix, data, CreateMode::EphemeralSequential).await;
            let fault = match created {
                Ok((path, _)) => match Self::new(live, path) {
                    Some(lock) => return Asked::Placed(lock),
                    None => return Asked::Failed(Fault::NotSent("the server gave no sequence")),
                },
                Err(fault) => fault,
            };
            match &fault {
                Fault::Refused { refusal: Refusal::NoNode, .. } => return Asked::NoKey,
                Fault::Refused { .. } | Fault::NotSent(_) => return Asked::Failed(fault),
                Fault::InDoubt(_) => match find(&live, paths).await {
                    Some(Some(path)) => match Self::new(live, path) {
                        Some(lock) => return Asked::Placed(lock),
                        None => return Asked::Failed(fault),
                    },
                    // Surely not applied: it is asked for again under the same name.
                    Some(None) => {}
                    // The node ends with its session, and nothing hangs on it.
                    None => return Asked::Failed(fault),
                },
            }
        }
    }

    pub(super) fn count(&mut self, route: &str) {
        self.counted = Some(LiveLock::new(route));
    }

    pub(super) fn for_log(&self, queued: bool) -> LockPlace {
        LockPlace { path: self.path.as_str().into(), session: self.session().id, queued }
    }

    pub(super) async fn place(&self, paths: &KeyPaths) -> Result<Place, Fault> {
        let children = match self.session().client.children(&paths.node).await {
            Ok(children) => children,
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => return Ok(Place::Gone),
            Err(fault) => return Err(fault),
        };
        if !children.iter().any(|name| *name == paths::name_of(&self.path)) {
            return Ok(Place::Gone);
        }
        Ok(match paths::predecessor(&children, self.sequence) {
            Some(name) => Place::Behind(name.to_owned()),
            None => Place::Lowest(children),
        })
    }

    /// Watches one node; `None` if it is gone already. With `getData`, since a watch that
    /// `exists` leaves on a node that vanished is never taken away.
    pub(super) async fn watch(
        &self,
        paths: &KeyPaths,
        name: &str,
    ) -> Result<Option<OneshotWatcher>, Fault> {
        match self.session().client.watch(&paths.child(name)).await {
            Ok(watcher) => Ok(Some(watcher)),
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Waits until the node before ours changes; where it cannot be watched, for a while.
    pub(super) async fn wait_behind(&self, paths: &KeyPaths, name: &str) {
        let Ok(_watching) = self.session().watch_room(paths.child(name).len()) else {
            return sleep(UNWATCHED).await;
        };
        match self.watch(paths, name).await {
            Ok(Some(watcher)) => drop(watcher.changed().await),
            Ok(None) => {}
            Err(_) => sleep(PAUSE).await,
        }
    }

    /// Deletes the node: tried once here, and then in the background until it is gone or its
    /// session is.
    pub(super) async fn leave(self, core: &Core) {
        self.live.end();
        if !is_deleted(&self).await {
            core.spawn_end(async move {
                while !self.session().lost.is_cancelled() && !is_deleted(&self).await {
                    sleep(PAUSE).await;
                }
            });
        }
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        self.live.session()
    }
}

async fn is_deleted(lock: &Lock) -> bool {
    match lock.session().client.delete(&lock.path).await {
        Ok(()) => true,
        Err(fault) => fault.is_refused_with(&Refusal::NoNode),
    }
}

/// The path of the attempt's lock node, after a reply was lost: `Some(None)` if it is surely not
/// there and never will be, `None` if the session is lost.
pub(super) async fn find(live: &Live, paths: &KeyPaths) -> Option<Option<String>> {
    let session = live.session();
    loop {
        // Only after a later write of this session is nothing of it on its way any more, and its
        // server no older than that. A `sync` would not do: a server that is cut off from its
        // leader answers it.
        if !session.barrier().await {
            return None;
        }
        let children = match session.client.children(&paths.node).await {
            Ok(children) => children,
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => return Some(None),
            Err(_) => continue,
        };
        let Some(name) = paths::find_own(&children, live.attempt()) else { return Some(None) };
        let path = paths.child(name);
        match session.client.exists(&path).await {
            Ok(Some(stat)) if stat.ephemeral_owner == session.id => return Some(Some(path)),
            Ok(_) => return Some(None),
            Err(_) => {}
        }
    }
}
