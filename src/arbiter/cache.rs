//! Completed records in memory, so that a retry costs the ledger nothing.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};

use crate::domain::{BootInstant, Clock, KeyId, Record};

/// Bounded in bytes. Holds completed records only: no other state of a key is final.
pub(super) struct ReplayCache {
    records: Option<Cache<KeyId, Cached, ByWeight>>,
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
        let records = (capacity > 0).then(|| Cache::with_weighter(items, capacity, ByWeight));
        Self { records, clock }
    }

    pub(super) fn get(&self, key: &KeyId) -> Option<Arc<Record>> {
        let records = self.records.as_ref()?;
        let Cached { record, until } = records.get(key)?;
        if self.clock.boot() < until {
            return Some(record);
        }
        records.remove(key);
        None
    }

    pub(super) fn insert(&self, key: KeyId, record: &Arc<Record>) {
        let Some(records) = &self.records else { return };
        let remaining = record.expires_at.since(self.clock.wall());
        let until = self.clock.boot().after(remaining);
        records.insert(key, Cached { record: Arc::clone(record), until });
    }

    pub(super) fn weight(&self) -> u64 {
        self.records.as_ref().map_or(0, Cache::weight)
    }
}

// === impl ByWeight ===

impl Weighter<KeyId, Cached> for ByWeight {
    fn weight(&self, _: &KeyId, cached: &Cached) -> u64 {
        cached.record.response.weight() as u64
    }
}
