//! The client's name for one operation (draft-ietf-httpapi-idempotency-key-header).

use std::fmt;

use http::{HeaderMap, HeaderName};

/// A client-chosen key that names one logical operation; compared and hashed, never interpreted.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Box<str>);

/// What a route accepts as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRules {
    /// In bytes after unquoting; 255 unless configured, never over [`IdempotencyKey::MAX_LENGTH`].
    pub max_length: usize,
    pub format: KeyFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyFormat {
    #[default]
    Any,
    Uuid,
}

/// Why a header is not an idempotency key. (The helper refines the variants.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the key is empty")]
    Empty,
}

// === impl IdempotencyKey ===

impl IdempotencyKey {
    pub const MAX_LENGTH: usize = 1024;

    /// Reads the key from the one line of `name`; `None` when there is no such line.
    pub fn read(
        headers: &HeaderMap,
        name: &HeaderName,
        rules: KeyRules,
    ) -> Result<Option<Self>, KeyError> {
        let _ = (headers, name, rules);
        todo!("domain helper")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IdempotencyKey {
    /// Keys can carry order numbers or card tokens, so `Debug` shows only their length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey(<{} bytes>)", self.0.len())
    }
}
