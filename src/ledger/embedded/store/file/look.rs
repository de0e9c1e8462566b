//! Looks whether a ledger's file can be opened, and changes nothing.

use std::{
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use redb::{Builder, DatabaseError, ReadableDatabase};
use rustix::fs::{Access, access};

use super::open::{OpenError, Trouble, refusal};
use crate::ledger::embedded::store::layout::{Identity, Kinship};

/// What a start would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger::embedded) enum Look {
    /// It was closed in good order.
    Closed { bytes: u64 },
    /// Its process was killed: a start looks through all of it, and what was open is unknown.
    Killed { bytes: u64 },
    /// A process has it.
    InUse,
    /// A start makes it.
    Missing,
}

/// # Errors
///
/// Those of a start.
pub(in crate::ledger::embedded) fn look(path: &Path) -> Result<Look, OpenError> {
    let io_error = |source| OpenError::Io { path: path.to_owned(), source };
    let bytes = match fs::metadata(path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            may_write(folder.unwrap_or(Path::new("."))).map_err(io_error)?;
            return Ok(Look::Missing);
        }
        Err(error) => return Err(io_error(error)),
    };
    may_write(path).map_err(io_error)?;
    let corrupt = |_panic| {
        let reason = "its pages contradict each other".to_owned();
        Err(Trouble::Open(OpenError::Corrupt { path: path.to_owned(), reason }))
    };
    match catch_unwind(AssertUnwindSafe(|| read(path))).unwrap_or_else(corrupt) {
        Ok(()) => Ok(Look::Closed { bytes }),
        Err(Trouble::Open(OpenError::InUse { .. })) => Ok(Look::InUse),
        Err(Trouble::Open(error)) => Err(error),
        Err(Trouble::Store(redb::Error::RepairAborted)) => Ok(Look::Killed { bytes }),
        Err(Trouble::Store(source)) => Err(OpenError::Store { path: path.to_owned(), source }),
    }
}

fn read(path: &Path) -> Result<(), Trouble> {
    let database = match Builder::new().open_read_only(path) {
        Ok(database) => database,
        Err(DatabaseError::RepairAborted) => return Err(redb::Error::RepairAborted.into()),
        Err(error) => return Err(refusal(path.to_owned(), error).into()),
    };
    match Identity::read(&database.begin_read().map_err(redb::Error::from)?)? {
        Kinship::Ours(_) | Kinship::Blank => Ok(()),
        Kinship::Format(format) => Err(OpenError::Version { path: path.to_owned(), format }.into()),
        Kinship::Foreign => Err(OpenError::Foreign { path: path.to_owned() }.into()),
    }
}

fn may_write(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::WRITE_OK)?)
}
