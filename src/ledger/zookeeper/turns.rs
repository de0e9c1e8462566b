//! One contender per key in this gateway: the others wait for its turn to end.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::domain::KeyId;

#[derive(Debug)]
pub(super) struct Turns(Mutex<HashMap<KeyId, watch::Receiver<Phase>>>);

/// The right to ask the ensemble for one key's lock.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    key: KeyId,
    phase: watch::Sender<Phase>,
}

/// Another has the turn.
#[derive(Debug)]
pub(super) struct Busy(watch::Receiver<Phase>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It will be over in a few round trips.
    Opening,
    /// It waits for a live holder.
    Queued,
}

/// What became of another's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// It is over: look again.
    Over,
    /// It waits for a live holder, and so would this one.
    Waits,
}

// === impl Turns ===

impl Turns {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    pub(super) fn take(self: &Arc<Self>, key: KeyId) -> Result<Turn, Busy> {
        let mut turns = self.lock();
        if let Some(phase) = turns.get(&key) {
            return Err(Busy(phase.clone()));
        }
        let (phase, receiver) = watch::channel(Phase::Opening);
        turns.insert(key, receiver);
        Ok(Turn { turns: Arc::clone(self), key, phase })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, watch::Receiver<Phase>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Turn ===

impl Turn {
    /// From here on it may take long.
    pub(super) fn queue(&self) {
        self.phase.send_replace(Phase::Queued);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.key);
    }
}

// === impl Busy ===

impl Busy {
    /// Waits until the turn is over; without patience only until it is clear that it takes long.
    pub(super) async fn wait(mut self, until: Option<Instant>, opening: Instant) -> Other {
        if self.0.has_changed().is_err() {
            return Other::Over;
        }
        let over = match until {
            // An error means that the turn was dropped.
            None => {
                let queued = self.0.wait_for(|phase| *phase == Phase::Queued);
                timeout_at(opening, queued).await.is_ok_and(|queued| queued.is_err())
            }
            Some(until) => {
                let never = self.0.wait_for(|_| false);
                timeout_at(until, never).await.is_ok()
            }
        };
        if over { Other::Over } else { Other::Waits }
    }
}
