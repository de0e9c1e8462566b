//! The number that grows from attempt to attempt of a key.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Strictly increasing per key: an upstream that remembers the highest one it has seen can refuse
/// a holder that was paused and came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FencingToken(u64);

// === impl FencingToken ===

impl FencingToken {
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
