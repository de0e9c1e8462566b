//! Opens the file, and takes it for the ledger's only if it is.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, RwLock},
};

use bytes::Bytes;
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, backends::FileBackend,
};

use super::{FileStore, Snapshot, Writer, boxed::Boxed};
use rustix::fs::{Advice, fadvise};
use uuid::Uuid;

use crate::{
    domain::{FencingToken, KeyId, Timestamp},
    ledger::embedded::store::{
        Kind, Mark, Place,
        layout::{FORMAT, HELD, INDEX, Identity, Kinship, SETTLED, insert_row},
    },
};

/// Enough for the inner pages of some ten million keys; the rest is the kernel's cache.
const CACHE: usize = 64 << 20;

/// Why the ledger's file was not opened. Nothing was written to a file that is not ours.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{path} is in use by another process; stop that one, or give each gateway a file of its own"
    )]
    InUse { path: PathBuf },
    #[error("{path} is not a ledger; move it away, or set ledger.embedded.path to another file")]
    Foreign { path: PathBuf },
    #[error(
        "{path} has format {format}, and this oncegate knows {FORMAT}; start the version that \
         wrote it"
    )]
    Version { path: PathBuf, format: u32 },
    #[error(
        "{path} is damaged: {reason}; restore it from a copy, or move it away to start without \
         the keys in it: their retries would then execute again"
    )]
    Corrupt { path: PathBuf, reason: String },
    #[error("{path} cannot be opened; check that its folder exists and is writable")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} cannot be prepared; check the disk that it is on")]
    Store {
        path: PathBuf,
        #[source]
        source: redb::Error,
    },
}

/// What to make, now, of an intent whose holder is gone: when it expires, and its new value;
/// `None` leaves the value as it is.
pub(in crate::ledger::embedded) type Orphans<'a> =
    &'a dyn Fn(Timestamp, &Bytes) -> (Timestamp, Option<Vec<u8>>);

/// Opens the file at a path, again after an error.
pub(in crate::ledger::embedded) struct Opener {
    path: PathBuf,
    backend: Box<Backends>,
}

/// Makes the backend, anew each time.
type Backends = dyn Fn(&Path, Purpose) -> io::Result<Box<dyn StorageBackend>> + Send + Sync;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger::embedded) enum Purpose {
    /// At start: a missing file is made.
    Start,
    /// After an error: a missing file is an error, since an empty ledger would forget every key.
    Recovery,
}

// === impl Opener ===

impl Opener {
    pub(in crate::ledger::embedded) fn file(path: PathBuf) -> Self {
        Self::with_backend(path, |path, purpose| {
            let file = open_file(path, purpose)?;
            let backend = FileBackend::new(file).map_err(io::Error::other)?;
            Ok(Box::new(backend))
        })
    }

    pub(in crate::ledger::embedded) fn with_backend(
        path: PathBuf,
        backend: impl Fn(&Path, Purpose) -> io::Result<Box<dyn StorageBackend>> + Send + Sync + 'static,
    ) -> Self {
        Self { path, backend: Box::new(backend) }
    }

    pub(in crate::ledger::embedded) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn open_existing(&self) -> Result<Database, DatabaseError> {
        self.open(Purpose::Recovery)
    }

    fn open(&self, purpose: Purpose) -> Result<Database, DatabaseError> {
        let backend = (self.backend)(&self.path, purpose)?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE);
        if purpose == Purpose::Start {
            builder.set_repair_callback(|repair| {
                tracing::info!(progress = repair.progress(), "file is repaired after a crash");
            });
        }
        builder.create_with_backend(Boxed(backend))
    }
}

fn open_file(path: &Path, purpose: Purpose) -> io::Result<File> {
    match (options().open(path), purpose) {
        (Err(error), Purpose::Start) if error.kind() == io::ErrorKind::NotFound => {
            make(path)?;
            options().open(path)
        }
        (Ok(file), Purpose::Recovery) => {
            // Pages that could not be written count as clean in the kernel's cache after a failed
            // fsync, and the next fsync leaves them out. Without them the engine reads what is
            // really on the disk.
            fadvise(&file, 0, None, Advice::DontNeed)?;
            Ok(file)
        }
        (opened, Purpose::Start | Purpose::Recovery) => opened,
    }
}

/// Makes an empty database beside `path` and gives it the name last: a crash half way leaves no
/// file that the next start would have to refuse.
fn make(path: &Path) -> io::Result<()> {
    let draft = path.with_added_extension(format!("{}.new", Uuid::new_v4().simple()));
    let backend = FileBackend::new(options().create_new(true).open(&draft)?);
    let made = backend
        .and_then(|backend| Database::builder().create_with_backend(backend)?.close())
        .map_err(io::Error::other)
        // A link, unlike a rename, never takes the place of another process's file.
        .and_then(|()| match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    fs::remove_file(&draft)?;
    made?;
    // The file's name must outlive a power cut, as its contents do.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

// === impl FileStore ===

impl FileStore {
    /// Opens the file, made and prepared if it is missing. Every intent in it is settled as
    /// `orphans` says, at the time of `start` or at what the file remembers, if that is later.
    pub(in crate::ledger::embedded) fn open(
        opener: Opener,
        start: Mark,
        orphans: Orphans<'_>,
    ) -> Result<Self, OpenError> {
        let path = || opener.path.clone();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let database = opener.open(Purpose::Start).map_err(|error| refusal(path(), error))?;
            let found = Identity::read(&database.begin_read().map_err(redb::Error::from)?)?;
            let identity = match found {
                Kinship::Ours(identity) => identity,
                Kinship::Format(format) => {
                    return Err(OpenError::Version { path: path(), format }.into());
                }
                Kinship::Foreign => return Err(OpenError::Foreign { path: path() }.into()),
                Kinship::Blank => Identity::new(),
            };
            let identity = prepare(&database, identity, start, orphans)?;
            let snapshot = Snapshot::of(&database, identity.totals())?;
            Ok((database, identity, snapshot))
        }));
        let (database, identity, snapshot) = match outcome {
            Ok(Ok(parts)) => parts,
            Ok(Err(Trouble::Open(error))) => return Err(error),
            Ok(Err(Trouble::Store(source))) => {
                return Err(OpenError::Store { path: path(), source });
            }
            Err(_panic) => {
                let reason = "its pages contradict each other".to_owned();
                return Err(OpenError::Corrupt { path: path(), reason });
            }
        };
        Ok(Self {
            opener,
            writer: Mutex::new(Writer { database: Some(database), identity }),
            snapshot: RwLock::new(Some(Arc::new(snapshot))),
        })
    }
}

/// Makes the tables, and settles what the last process held.
fn prepare(
    database: &Database,
    mut identity: Identity,
    start: Mark,
    orphans: Orphans<'_>,
) -> Result<Identity, redb::Error> {
    // Not its time: a wall clock that is ahead is not to be remembered.
    identity.advance(Mark { now: Timestamp::from_millis(0), ..start });
    let now = identity.mark().now.max(start.now);
    let mut totals = identity.totals();
    let transaction = database.begin_write()?;
    {
        let mut held = transaction.open_table(HELD)?;
        let mut index = transaction.open_table(INDEX)?;
        let mut settled = transaction.open_table(SETTLED)?;
        let intents: Vec<(KeyId, Bytes)> = held
            .iter()?
            .map(|row| {
                let (key, intent) = row?;
                Ok((KeyId::from_bytes(*key.value()), Bytes::copy_from_slice(intent.value())))
            })
            .collect::<Result<_, redb::Error>>()?;
        for (key, intent) in intents {
            let place_token = FencingToken::new(identity.mark().token.get() + 1);
            identity.advance(Mark { token: place_token, ..identity.mark() });
            let (expires_at, value) = orphans(now, &intent);
            let place = Place { expires_at, token: place_token };
            let value = value.as_deref().unwrap_or(&intent);
            let key = key.as_bytes();
            held.remove(key)?;
            index.insert(key, place.to_row())?;
            insert_row(&mut settled, place, (Kind::Unknown, key, value))?;
            totals.add(Kind::Unknown, value.len());
        }
    }
    identity.set_totals(totals);
    identity.write(&transaction)?;
    transaction.commit()?;
    Ok(identity)
}

pub(super) enum Trouble {
    Open(OpenError),
    Store(redb::Error),
}

impl From<OpenError> for Trouble {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<redb::Error> for Trouble {
    fn from(error: redb::Error) -> Self {
        Self::Store(error)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the engine's errors are open-ended")]
pub(super) fn refusal(path: PathBuf, error: DatabaseError) -> OpenError {
    match redb::Error::from(error) {
        redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => {
            OpenError::InUse { path }
        }
        redb::Error::UpgradeRequired(format) => {
            OpenError::Version { path, format: u32::from(format) }
        }
        redb::Error::Corrupted(reason) => OpenError::Corrupt { path, reason },
        redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            OpenError::Foreign { path }
        }
        redb::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            OpenError::Corrupt { path, reason: "it is cut".to_owned() }
        }
        redb::Error::Io(source) => OpenError::Io { path, source },
        source => OpenError::Store { path, source },
    }
}
