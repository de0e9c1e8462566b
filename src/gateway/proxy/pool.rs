//! The idle connections of one endpoint.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::link::Link;

/// Idle connections, the last one back given out first.
///
/// Nobody polls an idle connection. That its peer has closed it is found out when it is used; it is
/// closed here soon after it was idle for `idle_timeout`.
pub(super) struct Pool {
    idle: Mutex<Idle>,
    idle_timeout: Duration,
    max_idle: usize,
}

#[derive(Default)]
struct Idle {
    /// The longest idle one in front.
    links: VecDeque<(Instant, Box<Link>)>,
    /// Whether a task looks after them.
    is_swept: bool,
}

// === impl Pool ===

impl Pool {
    pub(super) fn new(idle_timeout: Duration, max_idle: usize) -> Self {
        Self { idle: Mutex::default(), idle_timeout, max_idle }
    }

    /// The connection that was idle for the shortest time; of those that were made on this thread,
    /// if there is one: its wake-ups arrive here, where they are waited for.
    pub(super) fn take(&self) -> Option<Box<Link>> {
        let here = thread::current().id();
        let mut idle = self.lock();
        let is_usable = |(since, link): &(Instant, Box<Link>)| {
            link.home() == here && since.elapsed() < self.idle_timeout
        };
        let nearest = idle.links.iter().rposition(is_usable);
        let last = idle.links.len().checked_sub(1)?;
        let (since, link) = idle.links.remove(nearest.unwrap_or(last))?;
        if since.elapsed() < self.idle_timeout {
            return Some(link);
        }
        // The others are idle for even longer. They are closed after the lock was let go.
        let stale = std::mem::take(&mut idle.links);
        drop(idle);
        drop((link, stale));
        None
    }

    /// Takes back a connection whose exchange has ended on both sides.
    pub(super) fn put(self: &Arc<Self>, link: Box<Link>) {
        let mut idle = self.lock();
        let surplus = if idle.links.len() < self.max_idle {
            idle.links.push_back((Instant::now(), link));
            None
        } else {
            Some(link)
        };
        let sweep = !idle.is_swept && !idle.links.is_empty();
        idle.is_swept |= sweep;
        drop(idle);
        if sweep {
            tokio::spawn(sweeping(Arc::downgrade(self), self.idle_timeout));
        }
        drop(surplus);
    }

    /// Closes what is idle for too long, and tells whether anything is left.
    fn sweep(&self) -> bool {
        let mut stale = Vec::new();
        let mut idle = self.lock();
        while let Some((since, _)) = idle.links.front()
            && since.elapsed() >= self.idle_timeout
        {
            stale.extend(idle.links.pop_front());
        }
        idle.is_swept = !idle.links.is_empty();
        let goes_on = idle.is_swept;
        drop(idle);
        drop(stale);
        goes_on
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends with the pool, or when there is nothing left to look after.
async fn sweeping(pool: Weak<Pool>, period: Duration) {
    loop {
        sleep(period).await;
        match pool.upgrade() {
            Some(pool) if pool.sweep() => {}
            Some(_) | None => return,
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("idle", &self.lock().links.len()).finish_non_exhaustive()
    }
}
