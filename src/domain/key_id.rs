//! Namespace, scope and key together, hashed.

use std::fmt;

use super::{IdempotencyKey, Scope, Secret};

/// SHA-256 (HMAC-SHA-256 under a secret) over length-prefixed namespace, scope values and key.
///
/// Hashing keeps callers apart from each other (P5) and any byte they send out of paths and logs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 32]);

// === impl KeyId ===

impl KeyId {
    pub fn new(
        secret: Option<&Secret>,
        namespace: &str,
        scope: &Scope,
        key: &IdempotencyKey,
    ) -> Self {
        let _ = (secret, namespace, scope, key);
        todo!("domain helper")
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    /// 64 lower-case hex digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}
