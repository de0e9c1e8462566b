//! Wall clocks that are not the machine's, by libfaketime.

use std::path::PathBuf;

use tempfile::NamedTempFile;

/// What processes started under it take for the time of day. Clocks that count from a start, and
/// so timers, leases and session timeouts, stay the machine's.
#[derive(Debug)]
pub(crate) struct WallClock {
    offset: NamedTempFile,
}

/// Debian's package `faketime`, which the ensemble's script installs.
fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap();
    let library = |folder: PathBuf| folder.join("faketime/libfaketimeMT.so.1");
    let mut libraries = folders.map(|folder| library(folder.unwrap().path()));
    libraries.find(|library| library.exists()).expect("Debian's package faketime is installed")
}

// === impl WallClock ===

impl WallClock {
    /// So far from the machine's, for instance `-25h`.
    pub(crate) fn off_by(offset: &str) -> Self {
        let clock = Self { offset: NamedTempFile::new().unwrap() };
        clock.step(offset);
        clock
    }

    /// From within a second on, it is so far from the machine's.
    pub(crate) fn step(&self, offset: &str) {
        std::fs::write(self.offset.path(), offset).unwrap();
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        vec![
            ("LD_PRELOAD", path(&library())),
            ("FAKETIME_TIMESTAMP_FILE", path(self.offset.path())),
            ("FAKETIME_CACHE_DURATION", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            // Without it, the timed waits of a JVM return at once.
            ("FAKETIME_FORCE_MONOTONIC_FIX", "0".into()),
        ]
    }
}
