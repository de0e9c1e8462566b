//! Whose keys these are.

use std::fmt;

use http::{HeaderMap, HeaderName};

/// Where a route finds its caller's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRule {
    pub source: ScopeSource,
    /// What happens to a request that lacks one of the headers: refused, or put into one common
    /// scope that equals no caller's.
    pub anonymous: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeSource {
    /// All lines of each of these headers, byte for byte. Never empty.
    Headers(Vec<HeaderName>),
    /// A single tenant, stated openly.
    None,
}

/// A caller's identity, already hashed: values are never kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope([u8; 32]);

/// A request lacks this header, which its route's scope names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header {0} is missing")]
pub struct ScopeMissing(pub HeaderName);

// === impl Scope ===

impl Scope {
    pub fn read(headers: &HeaderMap, rule: &ScopeRule) -> Result<Self, ScopeMissing> {
        let _ = (headers, rule);
        todo!("domain helper")
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scope(<hidden>)")
    }
}
