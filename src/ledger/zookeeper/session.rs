//! One session with the ensemble, from its first heartbeat to the last drop of its client.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use zookeeper_client::{MultiWriteResult, SessionState};

use super::{
    client::{Client, Op, Operation},
    fault::Fault,
    lease::{Beats, Terms},
    time::ServerTime,
};
use crate::{
    domain::{AttemptId, BootInstant, Clock},
    ledger::{Lease, LedgerError},
};

/// Everything that is bound to one session: its client, its lease and the attempts whose locks it
/// holds. Once lost it stays lost; its slot opens another.
pub(super) struct Session {
    pub(super) id: i64,
    pub(super) slot: usize,
    pub(super) client: Client,
    pub(super) heartbeat_path: String,
    /// Its node in the election of the sweeper, if it stands.
    pub(super) candidate: Option<String>,
    /// The lease is over, or the session is: nothing of it is surely ours any more.
    pub(super) lost: CancellationToken,
    pub(super) terms: Terms,
    clock: Clock,
    time: Arc<ServerTime>,
    beats: Mutex<Beats>,
    live: Mutex<HashMap<AttemptId, Entry>>,
    /// Bumped whenever an attempt leaves.
    left: Notify,
    asked: Notify,
    sent: AtomicU64,
    /// Bytes of the paths that are watched.
    watched: AtomicUsize,
    acknowledged: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Entry {
    gone: CancellationToken,
    /// Its lock node was seen to be there.
    established: bool,
}

/// An attempt in the table of its session, from before its lock is asked for until its fate is
/// known.
#[derive(Debug)]
pub(super) struct Live {
    session: Arc<Session>,
    attempt: AttemptId,
    /// Its lock vanished, although the session goes on.
    gone: CancellationToken,
}

/// A path that is watched.
#[derive(Debug)]
pub(super) struct Watching {
    session: Arc<Session>,
    path: usize,
}

/// A server lists all of a session's ephemeral nodes in the one packet that ends it.
const MOST_LOCKS: usize = 8_000;

/// With more bytes of watched paths than fit into one packet of 128 KiB, the library's session
/// would not survive a reconnection.
const MOST_WATCHED: usize = 100 * 1024;

// === impl Session ===

impl Session {
    pub(super) fn new(
        (id, slot): (i64, usize),
        client: Client,
        (heartbeat_path, candidate): (String, Option<String>),
        (terms, asked): (Terms, BootInstant),
        (clock, time): (Clock, Arc<ServerTime>),
    ) -> Self {
        Self {
            id,
            slot,
            client,
            heartbeat_path,
            candidate,
            lost: CancellationToken::new(),
            terms,
            clock,
            time,
            beats: Mutex::new(Beats::new(terms, asked)),
            live: Mutex::default(),
            left: Notify::new(),
            asked: Notify::new(),
            sent: AtomicU64::new(0),
            watched: AtomicUsize::new(0),
            acknowledged: watch::Sender::new(0),
        }
    }

    /// Cheap, and right even if this process was stopped a moment ago.
    pub(super) fn is_leased(&self) -> bool {
        !self.lost.is_cancelled() && self.clock.boot() < self.lease_until()
    }

    pub(super) fn lease_until(&self) -> BootInstant {
        lock(&self.beats).lease_until()
    }

    pub(super) fn lease_left(&self) -> Duration {
        self.lease_until().since(self.clock.boot())
    }

    pub(super) fn is_connected(&self) -> bool {
        self.client.state() == SessionState::SyncConnected
    }

    /// Sends a heartbeat and counts it.
    pub(super) async fn beat(&self) -> Result<(), Fault> {
        let number = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
        let sent = self.clock.boot();
        let stat = self.client.beat(&self.heartbeat_path).await?;
        self.written(sent);
        self.time.observe(stat.mtime);
        self.acknowledged.send_if_modified(|newest| {
            let is_newer = *newest < number;
            *newest = number.max(*newest);
            is_newer
        });
        Ok(())
    }

    /// A transaction whose acknowledgement counts for the lease.
    pub(super) async fn transact(
        &self,
        operation: Operation,
        ops: Vec<Op>,
    ) -> Result<Vec<MultiWriteResult>, Fault> {
        let sent = self.clock.boot();
        let results = self.client.transact(operation, ops).await?;
        self.written(sent);
        Ok(results)
    }

    /// Waits for a write of this session that was sent after this call: what its server shows
    /// from then on is no older than this call, and nothing that was sent before is still on its
    /// way. Many callers share one write. False if the session was lost first.
    pub(super) async fn barrier(&self) -> bool {
        let wanted = self.sent.load(Ordering::SeqCst) + 1;
        let mut acknowledged = self.acknowledged.subscribe();
        self.asked.notify_one();
        tokio::select! {
            seen = acknowledged.wait_for(|newest| *newest >= wanted) => seen.is_ok(),
            () = self.lost.cancelled() => false,
        }
    }

    /// Resolves when someone waits for a heartbeat.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }

    pub(super) fn enter(self: &Arc<Self>, attempt: AttemptId) -> Live {
        let entry = Entry::default();
        let gone = entry.gone.clone();
        lock(&self.live).insert(attempt, entry);
        Live { session: Arc::clone(self), attempt, gone }
    }

    /// Room for one more lock node, or what there is too much of.
    pub(super) fn has_room(&self) -> Result<(), LedgerError> {
        if self.live_count() < MOST_LOCKS {
            return Ok(());
        }
        Err(LedgerError::Overloaded { what: "live locks of a session" })
    }

    /// Counts a path as watched until the guard is dropped.
    pub(super) fn watch_room(self: &Arc<Self>, path: usize) -> Result<Watching, LedgerError> {
        let watched = self.watched.fetch_add(path, Ordering::Relaxed) + path;
        let watching = Watching { session: Arc::clone(self), path };
        if watched <= MOST_WATCHED {
            return Ok(watching);
        }
        Err(LedgerError::Overloaded { what: "watched paths of a session" })
    }

    pub(super) fn live(&self) -> Vec<AttemptId> {
        lock(&self.live).keys().copied().collect()
    }

    /// Attempts whose lock node is surely asked for and was acknowledged.
    pub(super) fn established(&self) -> Vec<AttemptId> {
        let live = lock(&self.live);
        live.iter().filter(|(_, entry)| entry.established).map(|(attempt, _)| *attempt).collect()
    }

    pub(super) fn live_count(&self) -> usize {
        lock(&self.live).len()
    }

    /// The lock of this attempt is not there any more.
    pub(super) fn vanished(&self, attempt: AttemptId) {
        // One that ends meanwhile has deleted it itself.
        if let Some(entry) = lock(&self.live).get(&attempt)
            && entry.established
        {
            entry.gone.cancel();
        }
    }

    /// Resolves once no attempt is left.
    pub(super) async fn idle(&self) {
        loop {
            let left = self.left.notified();
            if self.live_count() == 0 {
                return;
            }
            left.await;
        }
    }

    fn written(&self, sent: BootInstant) {
        lock(&self.beats).acknowledged(sent, self.clock.boot());
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &format_args!("{:#x}", self.id))
            .field("slot", &self.slot)
            .field("lost", &self.lost.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.session.watched.fetch_sub(self.path, Ordering::Relaxed);
    }
}

// === impl Live ===

impl Live {
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(super) fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Its lock node is there.
    pub(super) fn establish(&self) {
        if let Some(entry) = lock(&self.session.live).get_mut(&self.attempt) {
            entry.established = true;
        }
    }

    /// Its lock node is about to be deleted by ourselves.
    pub(super) fn end(&self) {
        if let Some(entry) = lock(&self.session.live).get_mut(&self.attempt) {
            entry.established = false;
        }
    }

    /// Resolves when the lock is, or may be, not ours any more.
    pub(super) fn lost(&self) -> impl Future<Output = ()> + Send + 'static {
        let (session, gone) = (self.session.lost.clone(), self.gone.clone());
        async move {
            tokio::select! {
                () = session.cancelled() => {}
                () = gone.cancelled() => {}
            }
        }
    }

    pub(super) fn lease(&self) -> Arc<dyn Lease> {
        Arc::new(LockLease { session: Arc::clone(&self.session), gone: self.gone.clone() })
    }

    pub(super) fn is_leased(&self) -> bool {
        self.session.is_leased() && !self.gone.is_cancelled()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        lock(&self.session.live).remove(&self.attempt);
        self.session.left.notify_waiters();
    }
}

#[derive(Debug)]
struct LockLease {
    session: Arc<Session>,
    gone: CancellationToken,
}

// === impl LockLease ===

impl Lease for LockLease {
    fn is_running(&self) -> bool {
        self.session.is_leased() && !self.gone.is_cancelled()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
