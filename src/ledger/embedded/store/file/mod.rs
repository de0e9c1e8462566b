//! One redb file: a transaction and an fsync for each batch.

mod boxed;
mod look;
mod open;

use std::{
    fmt,
    ops::{Bound, ControlFlow},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, WriteTransaction};

pub(in crate::ledger::embedded) use self::look::{Look, look};
pub use self::open::OpenError;
pub(in crate::ledger::embedded) use self::open::Opener;
#[cfg(test)]
pub(in crate::ledger::embedded) use self::open::Purpose;
use super::{
    Change, Found, Kind, Mark, Place, Row, Store, StoreError, Totals,
    layout::{HELD, INDEX, Identity, Kinship, SETTLED, insert_row, remove_row, split_row},
};
use crate::domain::{KeyId, Timestamp};

pub(in crate::ledger::embedded) struct FileStore {
    opener: Opener,
    writer: Mutex<Writer>,
    /// As of the last commit; `None` while the file is closed. Kept, since opening tables costs
    /// more than a look into them.
    snapshot: RwLock<Option<Arc<Snapshot>>>,
}

struct Writer {
    database: Option<Database>,
    /// As of the last commit.
    identity: Identity,
}

struct Snapshot {
    held: ReadOnlyTable<&'static [u8; 32], &'static [u8]>,
    index: ReadOnlyTable<&'static [u8; 32], (u64, u64)>,
    settled: ReadOnlyTable<(u64, u64), &'static [u8]>,
    totals: Totals,
}

// === impl FileStore ===

impl FileStore {
    /// What must not run backwards, as of the last time that the file was open.
    pub(in crate::ledger::embedded) fn mark(&self) -> Mark {
        self.writer().identity.mark()
    }

    /// The time of the last transaction of the processes before this one; `None` in a new file.
    pub(in crate::ledger::embedded) fn remembered(&self) -> Option<Timestamp> {
        Some(self.mark().now).filter(|now| now.as_millis() > 0)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, snapshot: Option<Snapshot>) {
        let snapshot = snapshot.map(Arc::new);
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// For a look that takes longer than the writer should wait to show what it did.
    fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs `work` in one durable transaction, then shows what it did to `find`.
    fn transact<T>(
        &self,
        mark: Mark,
        work: impl FnOnce(&WriteTransaction, &mut Totals) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer();
        let Writer { database, identity } = &mut *writer;
        let database = database.as_ref().ok_or(StoreError::Closed)?;
        let mut next = identity.clone();
        next.advance(mark);
        let (done, snapshot) = unpanicked(|| {
            let mut totals = next.totals();
            let transaction = database.begin_write().map_err(redb::Error::from)?;
            let done = work(&transaction, &mut totals)?;
            next.set_totals(totals);
            next.write(&transaction)?;
            transaction.commit().map_err(redb::Error::from)?;
            Ok((done, Snapshot::of(database, totals)?))
        })?;
        *identity = next;
        self.show(Some(snapshot));
        Ok(done)
    }
}

/// A damaged page can make the engine panic where it has no error to give.
fn unpanicked<T>(work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Ok(done?),
        Err(_panic) => Err(StoreError::Panicked),
    }
}

impl Store for FileStore {
    fn find(&self, key: &KeyId) -> Result<Found, StoreError> {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        let snapshot = snapshot.as_ref().ok_or(StoreError::Closed)?;
        unpanicked(|| snapshot.find(key))
    }

    fn apply(
        &self,
        changes: &mut dyn Iterator<Item = &Change>,
        mark: Mark,
    ) -> Result<(), StoreError> {
        self.transact(mark, |transaction, totals| {
            let mut held = transaction.open_table(HELD)?;
            let mut index = transaction.open_table(INDEX)?;
            let mut settled = transaction.open_table(SETTLED)?;
            for change in changes {
                match change {
                    Change::Begin { key, intent, replaces } => {
                        let key = key.as_bytes();
                        if let Some(place) = replaces {
                            remove_row(&mut settled, *place, totals)?;
                            index.remove(key)?;
                        }
                        held.insert(key, &intent[..])?;
                    }
                    Change::Settle { key, place, kind, value } => {
                        let key = key.as_bytes();
                        held.remove(key)?;
                        index.insert(key, place.to_row())?;
                        if insert_row(&mut settled, *place, (*kind, key, value))? {
                            totals.add(*kind, value.len());
                        }
                    }
                    Change::Free { key } => {
                        held.remove(key.as_bytes())?;
                    }
                    Change::Decide { key, replaces, record } => {
                        let key = key.as_bytes();
                        held.remove(key)?;
                        if let Some(place) = replaces {
                            remove_row(&mut settled, *place, totals)?;
                            index.remove(key)?;
                        }
                        if let Some((place, value)) = record {
                            let kind = Kind::Completed;
                            index.insert(key, place.to_row())?;
                            if insert_row(&mut settled, *place, (kind, key, value))? {
                                totals.add(kind, value.len());
                            }
                        }
                    }
                }
            }
            Ok(())
        })
    }

    fn sweep(&self, until: Timestamp, mark: Mark, most: usize) -> Result<usize, StoreError> {
        let end = (until.as_millis(), u64::MAX);
        // A look costs no fsync: most of the time nothing has expired.
        let any = {
            let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
            let snapshot = snapshot.as_ref().ok_or(StoreError::Closed)?;
            unpanicked(|| Ok(snapshot.settled.range(..=end)?.next().transpose()?.is_some()))?
        };
        if !any {
            return Ok(0);
        }
        self.transact(mark, |transaction, totals| {
            let mut index = transaction.open_table(INDEX)?;
            let mut settled = transaction.open_table(SETTLED)?;
            let mut swept = 0;
            for row in settled.extract_from_if(..=end, |_, _| true)?.take(most) {
                let (place, row) = row?;
                swept += 1;
                let Some((kind, key, value)) = split_row(row.value()) else { continue };
                totals.subtract(kind, value.len());
                // The key may have begun a new life meanwhile.
                if index.get(key)?.is_some_and(|at| at.value() == place.value()) {
                    index.remove(key)?;
                }
            }
            Ok(swept)
        })
    }

    fn walk(
        &self,
        before: Option<Place>,
        visit: &mut dyn FnMut(Row<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        let snapshot = self.snapshot().ok_or(StoreError::Closed)?;
        unpanicked(|| snapshot.walk(before, visit))
    }

    fn reopen(&self) -> Result<(), StoreError> {
        let mut writer = self.writer();
        self.show(None);
        // The old handle goes first: it holds the file's lock.
        writer.database = None;
        let database = unpanicked(|| Ok(self.opener.open_existing()?))?;
        let (kinship, snapshot) = unpanicked(|| {
            let kinship = Identity::read(&database.begin_read()?)?;
            let snapshot = match &kinship {
                Kinship::Ours(identity) => Some(Snapshot::of(&database, identity.totals())?),
                Kinship::Blank | Kinship::Foreign | Kinship::Format(_) => None,
            };
            Ok((kinship, snapshot))
        })?;
        match kinship {
            Kinship::Ours(identity) if identity.id == writer.identity.id => {
                writer.identity = identity;
                writer.database = Some(database);
                self.show(snapshot);
                Ok(())
            }
            Kinship::Ours(_) | Kinship::Blank | Kinship::Foreign | Kinship::Format(_) => {
                Err(StoreError::Replaced)
            }
        }
    }

    fn close(&self) {
        let mut writer = self.writer();
        self.show(None);
        if let Some(Ok(Err(error))) = writer
            .database
            .take()
            .map(|database| catch_unwind(AssertUnwindSafe(|| database.close())))
        {
            // Everything is durable already; the next start repairs what a clean end leaves out.
            tracing::warn!(error = &error as &dyn std::error::Error, "file was not closed cleanly");
        }
    }

    fn totals(&self) -> Totals {
        // Not the writer's: its lock is taken as long as a commit lasts.
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        snapshot.as_ref().map_or_else(Totals::default, |snapshot| snapshot.totals)
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("opener", &self.opener).finish_non_exhaustive()
    }
}

// === impl Snapshot ===

impl Snapshot {
    fn of(database: &Database, totals: Totals) -> Result<Self, redb::Error> {
        let transaction = database.begin_read()?;
        Ok(Self {
            held: transaction.open_table(HELD)?,
            index: transaction.open_table(INDEX)?,
            settled: transaction.open_table(SETTLED)?,
            totals,
        })
    }

    fn walk(
        &self,
        before: Option<Place>,
        visit: &mut dyn FnMut(Row<'_>) -> ControlFlow<()>,
    ) -> Result<bool, redb::Error> {
        let end = before.map_or(Bound::Unbounded, |place| Bound::Excluded(place.to_row()));
        for row in self.settled.range::<(u64, u64)>((Bound::Unbounded, end))?.rev() {
            let (place, row) = row?;
            let Some((kind, key, value)) = split_row(row.value()) else { continue };
            let (place, key) = (Place::from_row(place.value()), KeyId::from_bytes(*key));
            if visit(Row { place, kind, key, value }).is_break() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn find(&self, key: &KeyId) -> Result<Found, redb::Error> {
        if let Some(intent) = self.held.get(key.as_bytes())? {
            return Ok(Found::Held(Bytes::copy_from_slice(intent.value())));
        }
        let Some(place) = self.index.get(key.as_bytes())? else { return Ok(Found::Nothing) };
        let row = self.settled.get(place.value())?;
        // An index that leads nowhere is damage: an empty value is unreadable, not absent.
        let value = row.as_ref().and_then(|row| match split_row(row.value()) {
            Some((_, owner, value)) if owner == key.as_bytes() => Some(value),
            Some(_) | None => None,
        });
        let value = Bytes::copy_from_slice(value.unwrap_or_default());
        Ok(Found::Settled(Place::from_row(place.value()), value))
    }
}
