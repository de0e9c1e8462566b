//! The sessions of this gateway: each slot has one, and replaces it once it is lost.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use zookeeper_client::{CreateMode, SessionState};

use super::{
    OpenError,
    client::Client,
    connect::connect,
    fault::{Fault, Refusal},
    paths::Layout,
    prepare::prepare,
    session::Session,
    settings::Settings,
    time::ServerTime,
    tls::Tls,
};
use crate::{
    domain::KeyId,
    telemetry::ensemble::{self, OperationMetrics, SessionLoss, SessionMetrics},
};

pub(super) struct Sessions {
    settings: Settings,
    layout: Layout,
    pub(super) tls: Option<Arc<Tls>>,
    slots: Vec<watch::Sender<Option<Arc<Session>>>>,
    /// Bumped whenever a slot changes.
    changed: watch::Sender<u64>,
    /// Why there is no usable session.
    trouble: watch::Sender<Option<Arc<OpenError>>>,
    pub(super) time: Arc<ServerTime>,
    closing: CancellationToken,
    tasks: TaskTracker,
    metrics: OperationMetrics,
}

/// Before the first repetition of a failed connection.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A lease is looked at so often, since timers do not count while the machine is suspended.
const LOOK: Duration = Duration::from_millis(100);

/// For attempts of a lost session to be aborted and answered, before its client is dropped.
const ANSWERS: Duration = Duration::from_secs(5);

/// For the library to say good-bye to the servers.
const GOODBYE: Duration = Duration::from_secs(1);

// === impl Sessions ===

impl Sessions {
    pub(super) fn new(settings: Settings, layout: Layout, tls: Option<Arc<Tls>>) -> Arc<Self> {
        let time = Arc::new(ServerTime::new(settings.clock.clone()));
        let slots = (0..settings.sessions.max(1)).map(|_| watch::Sender::new(None)).collect();
        Arc::new(Self {
            settings,
            layout,
            tls,
            slots,
            changed: watch::Sender::new(0),
            trouble: watch::Sender::new(None),
            time,
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            metrics: OperationMetrics::new(),
        })
    }

    /// Opens a session in every slot, and another whenever one is lost.
    pub(super) fn start(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        for slot in 0..self.slots.len() {
            let sessions = Arc::clone(self);
            self.tasks.spawn_on(async move { sessions.keep(slot).await }, runtime);
        }
        self.tasks.close();
    }

    /// A session whose lease runs, for this key: its own slot's, or the next one's. One that is
    /// connected comes first.
    pub(super) fn usable(&self, key: &KeyId) -> Option<Arc<Session>> {
        let first = usize::from(key.as_bytes()[1]);
        let usable = || {
            let slots = (0..self.slots.len()).map(|n| (first + n) % self.slots.len());
            slots.filter_map(|slot| self.of(slot)).filter(|session| session.is_leased())
        };
        usable().find(|session| session.is_connected()).or_else(|| usable().next())
    }

    /// Waits for one.
    pub(super) async fn usable_until(&self, key: &KeyId, until: Instant) -> Option<Arc<Session>> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(session) = self.usable(key) {
                return Some(session);
            }
            let change = tokio::time::timeout_at(until, changed.changed()).await;
            if !matches!(change, Ok(Ok(()))) {
                return None;
            }
        }
    }

    pub(super) fn any(&self) -> Option<Arc<Session>> {
        (0..self.slots.len()).filter_map(|slot| self.of(slot)).find(|session| session.is_leased())
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        (0..self.slots.len()).filter_map(|slot| self.of(slot)).collect()
    }

    fn of(&self, slot: usize) -> Option<Arc<Session>> {
        self.slots[slot].borrow().clone()
    }

    pub(super) fn trouble(&self) -> Option<Arc<OpenError>> {
        self.trouble.borrow().clone()
    }

    /// Resolves with the first usable session, or with what no waiting mends.
    pub(super) async fn first(&self) -> Result<(), Arc<OpenError>> {
        let (mut changed, mut trouble) = (self.changed.subscribe(), self.trouble.subscribe());
        loop {
            if self.any().is_some() {
                return Ok(());
            }
            if let Some(error) = trouble.borrow_and_update().clone().filter(|e| e.is_final()) {
                return Err(error);
            }
            // Both senders live as long as `self`.
            tokio::select! {
                _ = changed.changed() => {}
                _ = trouble.changed() => {}
            }
        }
    }

    /// Lets every session end, without waiting for it.
    pub(super) fn stop(&self) {
        self.closing.cancel();
    }

    /// Resolves once every slot has a session.
    pub(super) async fn all_open(&self) {
        let mut changed = self.changed.subscribe();
        while (0..self.slots.len()).any(|slot| self.of(slot).is_none()) {
            // The sender lives as long as `self`.
            drop(changed.changed().await);
        }
    }

    /// Resolves when the sessions are about to end.
    pub(super) async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// Ends every session in good order.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.tasks.wait().await;
    }

    async fn keep(self: Arc<Self>, slot: usize) {
        let mut failures = 0;
        while !self.closing.is_cancelled() {
            let opened = tokio::select! {
                opened = self.open(slot) => opened,
                () = self.closing.cancelled() => return,
            };
            match opened {
                Ok(session) => {
                    failures = 0;
                    self.trouble.send_replace(None);
                    self.publish(slot, Some(Arc::clone(&session)));
                    tracing::info!(
                        slot,
                        session_id = format_args!("{:#x}", session.id),
                        timeout = ?session.terms.timeout,
                        "session opened"
                    );
                    self.serve(&session).await;
                }
                Err(error) => {
                    tracing::warn!(slot, error = &error as &dyn std::error::Error, "no session");
                    self.trouble.send_replace(Some(Arc::new(error)));
                    failures += 1;
                }
            }
            tokio::select! {
                () = sleep(pause(failures)) => {}
                () = self.closing.cancelled() => {}
            }
        }
    }

    async fn open(&self, slot: usize) -> Result<Arc<Session>, OpenError> {
        let settings = &self.settings;
        let asked = settings.clock.boot();
        let (library, terms) = connect(settings, &settings.servers, self.tls.as_deref()).await?;
        let id = library.session_id().0;
        if terms.timeout != settings.session_timeout {
            tracing::warn!(
                asked = ?settings.session_timeout,
                negotiated = ?terms.timeout,
                "the servers gave another session timeout than ledger.zookeeper.session_timeout"
            );
        }
        let client = Client::new(library, settings.acls(), self.metrics.clone());
        prepare(&client, &self.layout).await?;
        let path = self.layout.heartbeat(&settings.gateway, id);
        let created =
            client.create(&path, settings.gateway.as_bytes(), CreateMode::Ephemeral).await;
        let (_, stat) = created.map_err(|fault| OpenError::root(&self.layout, &fault))?;
        self.time.observe(stat.mtime);
        // One session of each gateway stands for the election of the sweeper.
        let candidate = if slot == 0 {
            let election = self.layout.election();
            let mode = CreateMode::EphemeralSequential;
            let created = client.create(&election, settings.gateway.as_bytes(), mode).await;
            Some(created.map_err(|fault| OpenError::root(&self.layout, &fault))?.0)
        } else {
            None
        };
        let clocks = (settings.clock.clone(), Arc::clone(&self.time));
        Ok(Arc::new(Session::new((id, slot), client, (path, candidate), (terms, asked), clocks)))
    }

    /// Until the session is lost, and until nothing of it is left.
    async fn serve(&self, session: &Arc<Session>) {
        let metrics = SessionMetrics::new(session.slot);
        metrics.state(ensemble::SessionState::Connected);
        let loss = tokio::select! {
            loss = ended(session, &metrics) => Some(loss),
            () = beat(session) => Some(SessionLoss::Expired),
            () = lapsed(session, &metrics) => Some(SessionLoss::Lease),
            () = self.closing.cancelled() => None,
        };
        // The order counts: attempts are aborted first and answered, and only then may the
        // servers be told, since from that moment on others are let in.
        session.lost.cancel();
        self.publish(session.slot, None);
        metrics.lease(Duration::ZERO);
        metrics.state(ensemble::SessionState::Lost);
        if let Some(loss) = loss {
            ensemble::session_lost(loss);
            tracing::error!(
                slot = session.slot,
                session_id = format_args!("{:#x}", session.id),
                reason = loss.label(),
                attempts = session.live_count(),
                "session lost"
            );
        }
        let answers = if loss.is_some() { ANSWERS } else { GOODBYE };
        drop(timeout(answers, session.idle()).await);
        if let Some(mut watcher) = session.client.close() {
            drop(timeout(GOODBYE, watcher.changed()).await);
        }
    }

    fn publish(&self, slot: usize, session: Option<Arc<Session>>) {
        self.slots[slot].send_replace(session);
        self.changed.send_modify(|changes| *changes += 1);
    }
}

/// Resolves when the servers have ended the session.
async fn ended(session: &Session, metrics: &SessionMetrics) -> SessionLoss {
    let Some(mut watcher) = session.client.watcher() else { return SessionLoss::Expired };
    loop {
        match watcher.changed().await {
            SessionState::Expired | SessionState::Closed => return SessionLoss::Expired,
            SessionState::AuthFailed => return SessionLoss::Auth,
            SessionState::Disconnected => {
                tracing::warn!(slot = session.slot, "session suspended");
                metrics.state(ensemble::SessionState::Suspended);
            }
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                tracing::info!(slot = session.slot, "session connected");
                metrics.state(ensemble::SessionState::Connected);
            }
        }
    }
}

/// Heartbeats, until one shows that the session is over.
async fn beat(session: &Session) {
    loop {
        match session.beat().await {
            Ok(()) => {
                tokio::select! {
                    () = sleep(session.terms.heartbeat()) => {}
                    () = session.asked() => {}
                }
            }
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => return,
            Err(fault) => {
                tracing::debug!(slot = session.slot, %fault, "heartbeat failed");
                sleep(SHORTEST_PAUSE).await;
            }
        }
    }
}

/// Resolves when the lease is over.
async fn lapsed(session: &Session, metrics: &SessionMetrics) {
    loop {
        let left = session.lease_left();
        metrics.lease(left);
        if left.is_zero() {
            return;
        }
        sleep(left.min(LOOK)).await;
    }
}

/// Doubles up to the longest, and half of it is chance: many gateways do not come back at once.
fn pause(failures: u32) -> Duration {
    let longest = SHORTEST_PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
    longest / 2 + jitter(longest / 2)
}

/// Between nothing and `most`.
pub(super) fn jitter(most: Duration) -> Duration {
    let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
    most.mul_f64(f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX))
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("sessions", &self.all()).finish_non_exhaustive()
    }
}
