//! What the parts of a ledger in an ensemble share.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    paths::Layout, sessions::Sessions, settings::Settings, time::ServerTime, tls::Tls, turns::Turns,
};
use crate::{ledger::LedgerError, telemetry::ensemble};

pub(super) struct Core {
    pub(super) settings: Settings,
    pub(super) layout: Layout,
    pub(super) sessions: Arc<Sessions>,
    pub(super) turns: Arc<Turns>,
    /// No new begins.
    pub(super) closing: CancellationToken,
    /// The ends that were asked for, and the clearing up of attempts that came to nothing.
    pub(super) ends: TaskTracker,
    /// Attempts run here: never on the sessions' own threads.
    runtime: tokio::runtime::Handle,
    /// By route, the most lock nodes that were seen under one key of late, and when.
    most_locks: Mutex<HashMap<Arc<str>, (usize, Instant)>>,
}

/// For several scrapes to see it.
const OF_LATE: Duration = Duration::from_mins(5);

// === impl Core ===

impl Core {
    pub(super) fn new(settings: Settings, tls: Option<Arc<Tls>>) -> Arc<Self> {
        let layout = Layout::new(&settings.root);
        ensemble::register(layout.root());
        Arc::new(Self {
            sessions: Sessions::new(settings.clone(), layout.clone(), tls),
            settings,
            layout,
            turns: Turns::new(),
            closing: CancellationToken::new(),
            ends: TaskTracker::new(),
            runtime: tokio::runtime::Handle::current(),
            most_locks: Mutex::default(),
        })
    }

    pub(super) fn time(&self) -> &ServerTime {
        &self.sessions.time
    }

    /// Runs to its end whoever hangs up.
    pub(super) fn spawn(&self, attempt: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(attempt));
    }

    /// As [`spawn`](Self::spawn), and a close waits for it.
    pub(super) fn spawn_end(&self, end: impl Future<Output = ()> + Send + 'static) {
        drop(self.ends.spawn_on(end, &self.runtime));
    }

    /// So many lock nodes are under one key of this route.
    pub(super) fn saw(&self, route: &Arc<str>, locks: usize) {
        let mut most = self.most_locks();
        let now = Instant::now();
        let seen = most.entry(Arc::clone(route)).or_insert((0, now));
        if locks >= seen.0 {
            *seen = (locks, now);
            let locks = u32::try_from(locks).unwrap_or(u32::MAX);
            ensemble::locks_of_a_key(route, f64::from(locks));
        }
    }

    /// Forgets what was seen long ago, or the first crowd would be told of until the next start.
    pub(super) fn forget(&self) {
        self.most_locks().retain(|route, (_, at)| {
            let is_late = at.elapsed() < OF_LATE;
            if !is_late {
                ensemble::locks_of_a_key(route, 0.0);
            }
            is_late
        });
    }

    fn most_locks(&self) -> MutexGuard<'_, HashMap<Arc<str>, (usize, Instant)>> {
        self.most_locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn health(&self) -> Result<(), LedgerError> {
        if self.closing.is_cancelled() {
            return Err(closed());
        }
        if self.sessions.any().is_some() { Ok(()) } else { Err(self.unavailable()) }
    }

    pub(super) fn unavailable(&self) -> LedgerError {
        match self.sessions.trouble() {
            Some(trouble) => LedgerError::Unavailable {
                reason: trouble.to_string(),
                source: Some(trouble as Arc<dyn std::error::Error + Send + Sync>),
            },
            None => LedgerError::Unavailable {
                reason: "there is no usable session with the ensemble".to_owned(),
                source: None,
            },
        }
    }

    /// No new begins; what is in flight is told.
    pub(super) fn stop(&self) {
        self.closing.cancel();
        self.ends.close();
        self.sessions.stop();
    }

    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.ends.close();
        // Ends that were asked for are repeated as long as a lease runs, and no longer.
        drop(tokio::time::timeout(self.settings.timeout, self.ends.wait()).await);
        self.sessions.close().await;
    }
}

pub(super) fn closed() -> LedgerError {
    LedgerError::Unavailable { reason: "the ledger is closed".to_owned(), source: None }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("sessions", &self.sessions).finish_non_exhaustive()
    }
}
