//! A value that never shows in logs, errors or `Debug`.

use std::fmt;

/// The bytes of a secret from the configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

// === impl Secret ===

impl Secret {
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes themselves, for the one that computes with them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(<hidden>)")
    }
}
