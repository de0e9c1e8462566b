//! The tables of the file, and the row that names the file.
//!
//! A key's life dirties few pages: `held` has only the open intents and stays small, `settled` is
//! appended to, and only `index` is written at a random place, once, at the end. One table with
//! values under their key ids was measured at little over half the rate.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, TableHandle, WriteTransaction};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Kind, Mark, Place, Totals};
use crate::domain::{FencingToken, Timestamp};

/// Key id to intent.
pub(super) const HELD: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("held");
/// Key id to place.
pub(super) const INDEX: TableDefinition<'_, &[u8; 32], (u64, u64)> = TableDefinition::new("index");
/// Place to kind, key id and value.
pub(super) const SETTLED: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("settled");
/// One row, see [`Identity`].
pub(super) const IDENTITY: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("oncegate");

const ROW: &str = "ledger";

/// The only format so far.
pub(super) const FORMAT: u32 = 1;

/// Bytes in a row of `settled` before the value.
pub(super) const HEAD: usize = 33;

/// What the file is, and what must never run backwards in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) format: u32,
    /// Random: a file that appears in this one's place is not mistaken for it.
    pub(super) id: Uuid,
    time: u64,
    token: u64,
    completed: u64,
    unknown: u64,
    bytes: u64,
}

/// What a file turned out to be.
pub(super) enum Kinship {
    /// No tables at all: just made, or its maker crashed before the first transaction.
    Blank,
    /// Tables, but not ours.
    Foreign,
    /// Ours, in a format that is not known here.
    Format(u32),
    Ours(Identity),
}

// === impl Identity ===

impl Identity {
    pub(super) fn new(mark: Mark) -> Self {
        let mut new = Self {
            format: FORMAT,
            id: Uuid::new_v4(),
            time: 0,
            token: 0,
            completed: 0,
            unknown: 0,
            bytes: 0,
        };
        new.advance(mark);
        new
    }

    pub(super) fn read(transaction: &ReadTransaction) -> Result<Kinship, redb::Error> {
        let mut tables = transaction.list_tables()?.peekable();
        if tables.peek().is_none() {
            return Ok(Kinship::Blank);
        }
        if !tables.any(|table| table.name() == IDENTITY.name()) {
            return Ok(Kinship::Foreign);
        }
        let table = transaction.open_table(IDENTITY)?;
        let Some(row) = table.get(ROW)? else { return Ok(Kinship::Foreign) };
        // The format comes first in every format, and says what comes after it.
        let kinship = match postcard::take_from_bytes::<u32>(row.value()) {
            Ok((FORMAT, _)) => postcard::from_bytes(row.value()).map(Kinship::Ours),
            Ok((format, _)) => Ok(Kinship::Format(format)),
            Err(error) => Err(error),
        };
        Ok(kinship.unwrap_or(Kinship::Foreign))
    }

    pub(super) fn write(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        let row = postcard::to_stdvec(self).expect("a vector grows as needed");
        transaction.open_table(IDENTITY)?.insert(ROW, &row[..])?;
        Ok(())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { now: Timestamp::from_millis(self.time), token: FencingToken::new(self.token) }
    }

    pub(super) fn advance(&mut self, mark: Mark) {
        self.time = self.time.max(mark.now.as_millis());
        self.token = self.token.max(mark.token.get());
    }

    pub(super) fn totals(&self) -> Totals {
        Totals { completed: self.completed, unknown: self.unknown, bytes: self.bytes }
    }

    pub(super) fn set_totals(&mut self, totals: Totals) {
        Totals { completed: self.completed, unknown: self.unknown, bytes: self.bytes } = totals;
    }
}

// === impl Place ===

impl Place {
    pub(super) fn to_row(self) -> (u64, u64) {
        (self.expires_at.as_millis(), self.token.get())
    }

    pub(super) fn from_row((expires_at, token): (u64, u64)) -> Self {
        Self { expires_at: Timestamp::from_millis(expires_at), token: FencingToken::new(token) }
    }
}

// === impl Kind ===

impl Kind {
    fn to_byte(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Unknown => 1,
        }
    }

    /// A byte that nobody wrote counts as the state that is kept most carefully.
    fn from_byte(byte: u8) -> Self {
        if byte == 0 { Self::Completed } else { Self::Unknown }
    }
}

/// Splits a row of `settled`; `None` for one that is too short.
pub(super) fn split_row(row: &[u8]) -> Option<(Kind, &[u8; 32], &[u8])> {
    let (kind, rest) = row.split_first()?;
    let (key, value) = rest.split_first_chunk::<32>()?;
    Some((Kind::from_byte(*kind), key, value))
}

/// Takes a row out of `settled`, if it is there.
pub(super) fn remove_row(
    settled: &mut Table<'_, (u64, u64), &'static [u8]>,
    place: Place,
    totals: &mut Totals,
) -> Result<(), redb::Error> {
    if let Some(row) = settled.remove(place.to_row())?
        && let Some((kind, ..)) = split_row(row.value())
    {
        totals.subtract(kind, row.value().len() - HEAD);
    }
    Ok(())
}

/// Writes a row of `settled` without building it elsewhere first. Whether it is new there.
pub(super) fn insert_row(
    settled: &mut Table<'_, (u64, u64), &'static [u8]>,
    place: Place,
    (kind, key, value): (Kind, &[u8; 32], &[u8]),
) -> Result<bool, redb::Error> {
    let is_new = settled.get(place.to_row())?.is_none();
    let mut row = settled.insert_reserve(place.to_row(), HEAD + value.len())?;
    let row = row.as_mut();
    row[0] = kind.to_byte();
    row[1..HEAD].copy_from_slice(key);
    row[HEAD..].copy_from_slice(value);
    Ok(is_new)
}
