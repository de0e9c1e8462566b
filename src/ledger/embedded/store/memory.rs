//! Plain maps: nothing outlives the process. For demos and tests.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    ops::{Bound, ControlFlow},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use super::{Change, Found, Kind, Mark, Place, Row, Store, StoreError, Totals};
use crate::domain::KeyId;

#[derive(Default)]
pub(in crate::ledger::embedded) struct MemoryStore(Mutex<Maps>);

#[derive(Default)]
struct Maps {
    held: HashMap<KeyId, Bytes>,
    settled: HashMap<KeyId, (Place, Kind, Bytes)>,
    expiry: BTreeMap<Place, KeyId>,
    totals: Totals,
}

// === impl MemoryStore ===

impl MemoryStore {
    fn maps(&self) -> MutexGuard<'_, Maps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn find(&self, key: &KeyId) -> Result<Found, StoreError> {
        let maps = self.maps();
        Ok(match (maps.held.get(key), maps.settled.get(key)) {
            (Some(intent), _) => Found::Held(intent.clone()),
            (None, Some((place, _, value))) => Found::Settled(*place, value.clone()),
            (None, None) => Found::Nothing,
        })
    }

    fn apply(
        &self,
        changes: &mut dyn Iterator<Item = &Change>,
        _mark: Mark,
    ) -> Result<(), StoreError> {
        let mut maps = self.maps();
        for change in changes {
            maps.apply(change);
        }
        Ok(())
    }

    fn sweep(&self, mark: Mark, most: usize) -> Result<usize, StoreError> {
        let mut maps = self.maps();
        let mut swept = 0;
        while swept < most {
            let Some(first) = maps.expiry.first_entry() else { break };
            if !first.key().is_expired(mark.now) {
                break;
            }
            let (place, key) = first.remove_entry();
            maps.forget(&key, place);
            swept += 1;
        }
        Ok(swept)
    }

    fn walk(
        &self,
        before: Option<Place>,
        visit: &mut dyn FnMut(Row<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        let maps = self.maps();
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        for (place, key) in maps.expiry.range((Bound::Unbounded, end)).rev() {
            let Some((at, kind, value)) = maps.settled.get(key) else { continue };
            let row = Row { place: *place, kind: *kind, key: *key, value };
            if at == place && visit(row).is_break() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn close(&self) {}

    fn totals(&self) -> Totals {
        self.maps().totals
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

// === impl Maps ===

impl Maps {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Begin { key, intent, replaces } => {
                if let Some(place) = replaces {
                    self.expiry.remove(place);
                    self.forget(key, *place);
                }
                self.held.insert(*key, intent.clone().into());
            }
            Change::Settle { key, place, kind, value } => {
                self.held.remove(key);
                if self.expiry.insert(*place, *key).is_none() {
                    self.totals.add(*kind, value.len());
                }
                self.settled.insert(*key, (*place, *kind, value.clone().into()));
            }
            Change::Free { key } => {
                self.held.remove(key);
            }
            Change::Decide { key, replaces, record } => {
                self.held.remove(key);
                if let Some(place) = replaces {
                    self.expiry.remove(place);
                    self.forget(key, *place);
                }
                if let Some((place, value)) = record {
                    let kind = Kind::Completed;
                    if self.expiry.insert(*place, *key).is_none() {
                        self.totals.add(kind, value.len());
                    }
                    self.settled.insert(*key, (*place, kind, value.clone().into()));
                }
            }
        }
    }

    fn forget(&mut self, key: &KeyId, at: Place) {
        if self.settled.get(key).is_some_and(|(place, ..)| *place == at)
            && let Some((_, kind, value)) = self.settled.remove(key)
        {
            self.totals.subtract(kind, value.len());
        }
    }
}
