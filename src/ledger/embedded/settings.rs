//! What an embedded ledger is told at start.

use std::{path::PathBuf, time::Duration};

use crate::domain::Clock;

#[derive(Clone, Debug)]
pub struct Settings {
    pub durability: Durability,
    /// How long a `begin` waits for the file, and an end until it is called not stored.
    pub timeout: Duration,
    pub clock: Clock,
    pub sweep: Sweep,
}

/// What outlives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Everything, in this file.
    Fsync { path: PathBuf },
    /// Nothing. For demos and tests.
    Memory,
}

/// How fast expired values are deleted: at most `batch` of them every `pause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// From the end of one pass to the begin of the next.
    pub interval: Duration,
    pub batch: usize,
    pub pause: Duration,
}

// === impl Settings ===

impl Settings {
    /// Everything is kept in the file at `path`, with the defaults of the configuration file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(Durability::Fsync { path: path.into() })
    }

    /// Nothing outlives the process: for demos and tests.
    pub fn memory() -> Self {
        Self::new(Durability::Memory)
    }

    fn new(durability: Durability) -> Self {
        Self {
            durability,
            timeout: Duration::from_secs(5),
            clock: Clock::system(),
            sweep: Sweep::default(),
        }
    }
}

// === impl Sweep ===

impl Default for Sweep {
    /// About 10,000 values a second while there is something to delete.
    fn default() -> Self {
        Self { interval: Duration::from_mins(1), batch: 512, pause: Duration::from_millis(50) }
    }
}
