//! Which files are taken for the ledger's.

use std::{os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use redb::{Database, ReadableTable, TableDefinition};
use tempfile::TempDir;

use super::{
    disk::Disk,
    harness::{START, on_disk, settings},
};
use crate::{
    domain::Clock,
    ledger::{
        Ledger,
        embedded::{Durability, Embedded, OpenError},
        suite::requests::{answer, begin, completed, executing, request},
    },
};

fn open(path: &Path) -> Result<Embedded, OpenError> {
    let clock = Clock::by_hand(START).0;
    Embedded::open(&settings(&clock, Durability::Fsync { path: path.to_owned() }))
}

/// Opening fails, says where and what to do, and changes nothing.
#[track_caller]
fn refused(path: &Path) -> OpenError {
    let before = std::fs::read(path).unwrap();
    let error = open(path).unwrap_err();
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    assert_eq!(std::fs::read(path).unwrap(), before, "{error}");
    error
}

#[tokio::test]
async fn a_missing_file_is_made_for_its_owner_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");

    open(&path).unwrap().close().await;

    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    open(&path).unwrap().close().await;
    // Nothing else is left beside it.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_in_use_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = open(&path).unwrap();

    let error = open(&path).unwrap_err();

    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("in use by another process"));
    ledger.close().await;
    open(&path).unwrap().close().await;
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("notes");
    for contents in [&b"hello"[..], &[7; 10_000], &[0; 5000]] {
        std::fs::write(&path, contents).unwrap();
        let error = refused(&path);
        assert!(
            matches!(error, OpenError::Foreign { .. } | OpenError::Corrupt { .. }),
            "{error:?}"
        );
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("other.redb");
    let database = Database::create(&path).unwrap();
    let write = database.begin_write().unwrap();
    let table: TableDefinition<'_, &str, u64> = TableDefinition::new("settled");
    write.open_table(table).unwrap().insert("answer", 42).unwrap();
    write.commit().unwrap();
    drop(database);

    let error = open(&path).unwrap_err();

    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    let database = Database::open(&path).unwrap();
    let read = redb::ReadableDatabase::begin_read(&database).unwrap();
    assert_eq!(read.open_table(table).unwrap().get("answer").unwrap().unwrap().value(), 42);
    assert_eq!(read.list_tables().unwrap().count(), 1);
}

#[tokio::test]
async fn a_format_from_the_future_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");
    open(&path).unwrap().close().await;
    {
        let database = Database::open(&path).unwrap();
        let write = database.begin_write().unwrap();
        let table: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("oncegate");
        {
            let mut table = write.open_table(table).unwrap();
            let mut row = table.get("ledger").unwrap().unwrap().value().to_vec();
            row[0] = 2;
            row.push(9);
            table.insert("ledger", &row[..]).unwrap();
        }
        write.commit().unwrap();
    }

    let error = open(&path).unwrap_err();

    assert!(matches!(error, OpenError::Version { format: 2, .. }), "{error:?}");
}

/// A crash before the file was ever used needs nobody's help.
#[tokio::test]
async fn a_file_whose_preparation_was_cut_short_is_prepared_again() {
    let mut cut_short = 0;
    for patience in 0.. {
        let disk = Disk::default();
        Database::builder().create_with_backend(disk.clone()).unwrap().close().unwrap();
        disk.fail_after(patience, false);
        let settings = settings(&Clock::by_hand(START).0, Durability::Memory);
        let made = Embedded::in_file(&settings, disk.opener());
        for left in [disk.kill(), disk.cut(|| false)] {
            on_disk(&left, &Clock::by_hand(START).0).close().await;
        }
        if made.is_ok() && !disk.has_failed() {
            break;
        }
        cut_short += 1;
    }
    assert!(cut_short > 5, "{cut_short}");
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_kept() {
    let disk = Disk::default();
    let ledger: Arc<dyn Ledger> = on_disk(&disk, &Clock::by_hand(START).0);
    for key in 0..50 {
        executing(&ledger, request(key)).await.commit(answer("receipt")).await.unwrap();
    }
    // As a kill leaves it, so that the whole file is looked through; and then cut in half.
    let mut contents = disk.contents();
    contents.truncate(contents.len() / 2);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");
    std::fs::write(&path, &contents).unwrap();

    let error = open(&path).unwrap_err();

    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    assert!(std::fs::metadata(&path).unwrap().len() >= contents.len() as u64);
}

#[test]
fn a_missing_folder_is_named() {
    let error = open(Path::new("/nowhere/ledger.redb")).unwrap_err();

    assert!(matches!(error, OpenError::Io { .. }));
    assert!(error.to_string().contains("/nowhere/ledger.redb"));
}

/// The real file is opened again, too: with its locks, and with what is on the disk.
#[tokio::test]
async fn a_file_that_is_opened_again_has_everything() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = Arc::new(open(&path).unwrap());
    let shared: Arc<dyn Ledger> = Arc::clone(&ledger) as _;
    executing(&shared, request(1)).await.commit(answer("receipt")).await.unwrap();
    let hold = executing(&shared, request(2)).await;

    ledger.core.driver.suspect();

    hold.commit(answer("receipt")).await.unwrap();
    completed(begin(&shared, request(1)).await);
    completed(begin(&shared, request(2)).await);
    assert!(matches!(open(&path).unwrap_err(), OpenError::InUse { .. }));
}

#[tokio::test]
async fn a_dropped_ledger_lets_go_of_its_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger: Arc<dyn Ledger> = Arc::new(open(&path).unwrap());
    let hold = executing(&ledger, request(1)).await;
    // Still written, although nobody waits for it.
    let commit = hold.commit(answer("receipt"));
    let lost = {
        let probe = executing(&ledger, request(2)).await;
        drop(tokio_test::task::spawn(commit).poll());
        probe
    };
    drop(ledger);
    lost.lost().await;

    let ledger: Arc<dyn Ledger> = loop {
        // The lock goes right after the holds.
        match open(&path) {
            Ok(ledger) => break Arc::new(ledger),
            Err(OpenError::InUse { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    completed(begin(&ledger, request(1)).await);
}
