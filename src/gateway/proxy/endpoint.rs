//! What is known of the endpoints of an upstream, and which of them comes next.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{Balance, Endpoint, Settings, pool::Pool};

/// How long an endpoint comes last after it could not be connected to. Otherwise one that is down
/// would always have the fewest requests in flight, and each request would try it first.
const REST: Duration = Duration::from_secs(1);

/// All endpoints of an upstream.
#[derive(Debug)]
pub(super) struct Endpoints {
    all: Vec<Arc<Peer>>,
    balance: Balance,
    turn: AtomicUsize,
    start: Instant,
}

/// One endpoint.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) endpoint: Endpoint,
    pub(super) pool: Arc<Pool>,
    in_flight: AtomicUsize,
    /// Milliseconds after the start.
    rests_until: AtomicU64,
}

/// Counts one request as in flight until it is dropped.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Peer>);

// === impl Endpoints ===

impl Endpoints {
    pub(super) fn new(settings: &Settings) -> Self {
        let peer = |endpoint: &Endpoint| {
            Arc::new(Peer {
                endpoint: endpoint.clone(),
                pool: Arc::new(Pool::new(settings.idle_timeout, settings.max_idle)),
                in_flight: AtomicUsize::new(0),
                rests_until: AtomicU64::new(0),
            })
        };
        Self {
            all: settings.endpoints.iter().map(peer).collect(),
            balance: settings.balance,
            turn: AtomicUsize::new(0),
            start: Instant::now(),
        }
    }

    /// The next endpoint to try, by its number.
    pub(super) fn pick(&self, tried: &[usize]) -> Option<(usize, &Arc<Peer>)> {
        if self.all.len() < 2 {
            return self.all.first().map(|peer| (0, peer)).filter(|_| tried.is_empty());
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let now = self.millis();
        (0..self.all.len())
            .map(|step| turn.wrapping_add(step) % self.all.len())
            .filter(|number| !tried.contains(number))
            .map(|number| (number, &self.all[number]))
            // The first of equal ones is taken, so the turn decides among them.
            .min_by_key(|(_, peer)| {
                let rests = peer.rests_until.load(Ordering::Relaxed) > now;
                let load = match self.balance {
                    Balance::LeastRequests => peer.in_flight.load(Ordering::Relaxed),
                    Balance::RoundRobin => 0,
                };
                (rests, load)
            })
    }

    /// `peer` could not be connected to.
    pub(super) fn rest(&self, peer: &Peer) {
        let rest = u64::try_from(REST.as_millis()).unwrap_or(u64::MAX);
        peer.rests_until.store(self.millis().saturating_add(rest), Ordering::Relaxed);
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

// === impl InFlight ===

impl InFlight {
    pub(super) fn new(peer: &Arc<Peer>) -> Self {
        peer.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(peer))
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
