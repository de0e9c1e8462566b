//! Completed records in memory, so that a retry costs the ledger nothing.

use std::{sync::Arc, time::Duration};

use quick_cache::{Weighter, sync::Cache};

use crate::domain::{BootInstant, Clock, KeyId, Record};

/// Bounded in bytes. Holds completed records only: no other state of a key is final.
pub(super) struct ReplayCache {
    records: Cache<KeyId, Cached, ByWeight>,
    clock: Clock,
}

#[derive(Clone)]
struct Cached {
    record: Arc<Record>,
    /// On the boot-time clock: a step of the wall clock must not prolong a replay.
    until: BootInstant,
}

#[derive(Clone)]
struct ByWeight;

// === impl ReplayCache ===

impl ReplayCache {
    pub(super) fn new(capacity: u64, clock: Clock) -> Self {
        // For an average answer of a kilobyte; only sizes the tables.
        let items = usize::try_from(capacity / 1024).unwrap_or(usize::MAX).max(1);
        Self { records: Cache::with_weighter(items, capacity, ByWeight), clock }
    }

    pub(super) fn get(&self, key: &KeyId) -> Option<Arc<Record>> {
        let Cached { record, until } = self.records.get(key)?;
        if self.clock.boot() < until {
            return Some(record);
        }
        self.records.remove(key);
        None
    }

    /// Keeps the record for as long as it is still to be replayed.
    pub(super) fn insert(&self, key: KeyId, record: &Arc<Record>, remaining: Duration) {
        let until = self.clock.boot().after(remaining);
        self.records.insert(key, Cached { record: Arc::clone(record), until });
    }

    pub(super) fn weight(&self) -> u64 {
        self.records.weight()
    }

    pub(super) fn resize(&self, capacity: u64) {
        self.records.set_capacity(capacity);
    }
}

// === impl ByWeight ===

impl Weighter<KeyId, Cached> for ByWeight {
    fn weight(&self, _: &KeyId, cached: &Cached) -> u64 {
        cached.record.response.weight() as u64
    }
}
