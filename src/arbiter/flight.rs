//! Who executes a key in this process, and who waits for it here instead of in the ledger.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, futures::Notified};

use super::Refusal;
use crate::domain::{Fingerprint, KeyId, Record, StoredResponse};

/// Every key that somebody in this process asks the ledger about or executes.
#[derive(Default)]
pub(super) struct Flights {
    shards: [Mutex<HashMap<KeyId, Arc<Flight>>>; SHARDS],
}

const SHARDS: usize = 32;

/// One key in flight: one leader, many followers.
#[derive(Default)]
pub(super) struct Flight {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    phase: Phase,
    followers: usize,
}

/// What followers can know. Moves only forward.
#[derive(Clone, Default)]
pub(super) enum Phase {
    /// The leader asks the ledger; a different request may yet turn out to be the rightful one.
    #[default]
    Beginning,
    /// `Beginning -> Owned`: the ledger made the leader the owner.
    Owned(Fingerprint),
    /// `Beginning | Owned -> Ended`: the end is stored, as far as it can be. The fingerprint is
    /// the leader's: only equal requests share its ending.
    Ended(Fingerprint, Ending),
    /// The leader's task is gone. The ledger knows more.
    Gone,
}

/// How a flight ended for the requests that joined it.
#[derive(Clone)]
pub(super) enum Ending {
    Completed(Arc<Record>),
    Shared(Arc<StoredResponse>),
    Refused(Refusal),
    /// The leader's end says nothing to others: ask anew.
    Again,
}

/// A request's place in a flight.
pub(super) enum Place {
    Leader(Leader),
    Follower(Follower),
}

/// Leads a flight. Dropping it without an end sends the followers to the ledger.
pub(super) struct Leader {
    flights: Arc<Flights>,
    key: KeyId,
    flight: Arc<Flight>,
}

/// Follows a flight, counted as long as it lives.
pub(super) struct Follower {
    flight: Arc<Flight>,
    /// How many followed before this one.
    pub(super) ahead: usize,
}

// === impl Flights ===

impl Flights {
    pub(super) fn enter(self: &Arc<Self>, key: KeyId) -> Place {
        match self.shard(&key).entry(key) {
            Entry::Occupied(entry) => {
                let flight = Arc::clone(entry.get());
                let mut state = flight.state();
                let ahead = state.followers;
                state.followers += 1;
                drop(state);
                Place::Follower(Follower { flight, ahead })
            }
            Entry::Vacant(entry) => {
                let flight = Arc::clone(entry.insert(Arc::default()));
                Place::Leader(Leader { flights: Arc::clone(self), key, flight })
            }
        }
    }

    pub(super) fn followers(&self, key: &KeyId) -> usize {
        self.shard(key).get(key).map_or(0, |flight| flight.state().followers)
    }

    fn shard(&self, key: &KeyId) -> MutexGuard<'_, HashMap<KeyId, Arc<Flight>>> {
        let shard = usize::from(key.as_bytes()[0]) % SHARDS;
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Flight ===

impl Flight {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        self.state().phase = phase;
        self.changed.notify_waiters();
    }
}

// === impl Leader ===

impl Leader {
    pub(super) fn owned(&self, fingerprint: &Fingerprint) {
        self.flight.enter(Phase::Owned(fingerprint.clone()));
    }

    /// Ends the flight: what the ledger stored must be visible before this.
    pub(super) fn end(self, fingerprint: Fingerprint, ending: Ending) {
        // Out of the table first: whoever enters now asks the ledger, which knows the end.
        self.leave();
        self.flight.enter(Phase::Ended(fingerprint, ending));
    }

    /// Lets no further request join.
    fn leave(&self) {
        let mut shard = self.flights.shard(&self.key);
        if shard.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            shard.remove(&self.key);
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.leave();
        let mut state = self.flight.state();
        if !matches!(state.phase, Phase::Ended(..)) {
            state.phase = Phase::Gone;
            drop(state);
            self.flight.changed.notify_waiters();
        }
    }
}

// === impl Follower ===

impl Follower {
    /// The phase now, and what resolves when it changes after this call.
    pub(super) fn look(&self) -> (Phase, Notified<'_>) {
        // Registered before the look: a change between the two is not missed.
        let changed = self.flight.changed.notified();
        (self.flight.state().phase.clone(), changed)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.flight.state().followers -= 1;
    }
}
