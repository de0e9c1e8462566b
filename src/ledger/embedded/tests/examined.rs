//! What an examination says of a file, and that it leaves the file alone.

use std::path::Path;

use tempfile::TempDir;

use super::harness::{START, settings};
use crate::{
    domain::Clock,
    ledger::{
        Finding, Grade, Ledger,
        embedded::{Durability, Embedded, Settings, examine},
    },
};

fn of(path: &Path) -> Settings {
    settings(&Clock::by_hand(START).0, Durability::Fsync { path: path.to_owned() })
}

/// The one finding; nothing on the disk is changed.
#[track_caller]
fn examined(path: &Path) -> Finding {
    let before = std::fs::read(path).ok();
    let [finding] = examine(&of(path)).try_into().unwrap();
    assert_eq!(std::fs::read(path).ok(), before);
    finding
}

#[tokio::test]
async fn a_file_is_told_by_what_a_start_would_find() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");
    let missing = examined(&path);
    assert!(missing.detail.contains("not there yet"), "{missing:?}");

    let ledger = Embedded::open(&of(&path)).unwrap();
    let held = examined(&path);
    assert!(held.detail.contains("held by a running process"), "{held:?}");
    // As a crash leaves it.
    let killed = folder.path().join("killed.redb");
    std::fs::copy(&path, &killed).unwrap();
    ledger.close().await;

    let closed = examined(&path);
    assert!(closed.detail.contains("can be opened"), "{closed:?}");
    assert!([missing, held, closed].iter().all(|finding| finding.grade == Grade::Good));
    let killed = examined(&killed);
    assert_eq!(killed.grade, Grade::Doubtful);
    assert!(killed.detail.contains("not closed in good order"), "{killed:?}");
}

#[test]
fn what_a_start_would_refuse_is_bad_and_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");
    std::fs::write(&path, "a diary").unwrap();
    let nowhere = folder.path().join("no/ledger.redb");
    for path in [&path, &nowhere, &folder.path().to_owned()] {
        let finding = examined(path);
        assert_eq!(finding.grade, Grade::Bad, "{finding:?}");
        assert!(finding.detail.contains(&path.display().to_string()), "{finding:?}");
    }
}

#[test]
fn a_ledger_in_memory_is_doubtful() {
    let settings = settings(&Clock::by_hand(START).0, Durability::Memory);
    assert_eq!(examine(&settings)[0].grade, Grade::Doubtful);
}
