//! Who is at work on which key in this process.

use std::{
    collections::{HashMap, hash_map},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{Notify, futures::OwnedNotified};

use crate::domain::{Fingerprint, KeyId};

const SHARDS: usize = 64;

#[derive(Debug)]
pub(super) struct Table {
    shards: [Mutex<HashMap<KeyId, Entry>>; SHARDS],
    claims: AtomicUsize,
}

#[derive(Debug, Default)]
struct Entry {
    /// Of the holder; `None` until its intent is durable.
    fingerprint: Option<Fingerprint>,
    /// Made by the first who waits.
    changed: Option<Arc<Notify>>,
}

/// The only one of its key. Dropping it lets the next one in, so it is kept until what the store
/// says of the key is the whole truth.
#[derive(Debug)]
pub(super) struct Claim {
    key: KeyId,
    table: Arc<Table>,
}

/// Another has the claim. `changed` resolves when it is worth looking again.
#[derive(Debug)]
pub(super) enum Taken {
    /// It has not been told yet what the key is, so nothing can be said about the key.
    Opening {
        changed: OwnedNotified,
    },
    Held {
        fingerprint: Fingerprint,
        changed: OwnedNotified,
    },
}

// === impl Table ===

impl Table {
    pub(super) fn new() -> Arc<Self> {
        let shards = std::array::from_fn(|_| Mutex::default());
        Arc::new(Self { shards, claims: AtomicUsize::new(0) })
    }

    pub(super) fn claim(self: &Arc<Self>, key: KeyId) -> Result<Claim, Taken> {
        match self.shard(&key).entry(key) {
            hash_map::Entry::Vacant(entry) => {
                entry.insert(Entry::default());
                self.claims.fetch_add(1, Ordering::Relaxed);
                Ok(Claim { key, table: Arc::clone(self) })
            }
            hash_map::Entry::Occupied(entry) => {
                let entry = entry.into_mut();
                // Made under the lock: from here on no wake-up is missed.
                let changed = Arc::clone(entry.changed.get_or_insert_default()).notified_owned();
                Err(match &entry.fingerprint {
                    Some(fingerprint) => Taken::Held { fingerprint: fingerprint.clone(), changed },
                    None => Taken::Opening { changed },
                })
            }
        }
    }

    /// Keys whose intent is durable and that are held now.
    pub(super) fn held(&self) -> Vec<KeyId> {
        let mut held = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let is_held =
                |(key, entry): (&KeyId, &Entry)| entry.fingerprint.is_some().then_some(*key);
            held.extend(shard.iter().filter_map(is_held));
        }
        held
    }

    /// How many keys are claimed now.
    pub(super) fn claims(&self) -> usize {
        self.claims.load(Ordering::Relaxed)
    }

    fn shard(&self, key: &KeyId) -> MutexGuard<'_, HashMap<KeyId, Entry>> {
        let shard = usize::from(key.as_bytes()[0]) % SHARDS;
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Claim ===

impl Claim {
    pub(super) fn key(&self) -> &KeyId {
        &self.key
    }

    /// The intent is durable: from here on others are compared with it.
    pub(super) fn hold(&self, fingerprint: Fingerprint) {
        let changed = self.table.shard(&self.key).get_mut(&self.key).and_then(|entry| {
            entry.fingerprint = Some(fingerprint);
            entry.changed.take()
        });
        if let Some(changed) = changed {
            changed.notify_waiters();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let entry = self.table.shard(&self.key).remove(&self.key);
        self.table.claims.fetch_sub(1, Ordering::Relaxed);
        if let Some(changed) = entry.and_then(|entry| entry.changed) {
            changed.notify_waiters();
        }
    }
}
