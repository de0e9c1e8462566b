//! Whose keys these are.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::digest::Digest;

#[cfg(test)]
mod tests;

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

// === impl ScopeRule ===

impl ScopeRule {
    /// Callers are told apart by all of these headers, and a request that lacks one is refused.
    ///
    /// # Panics
    ///
    /// Without a name: then all callers would be one.
    pub fn headers(names: impl IntoIterator<Item = HeaderName>) -> Self {
        let names = Vec::from_iter(names);
        assert!(!names.is_empty(), "a scope needs a header");
        Self { source: ScopeSource::Headers(names), anonymous: false }
    }
}

// === impl Scope ===

impl Scope {
    const LABEL: &str = "oncegate scope 1";

    /// Reads who the caller is from all lines of the headers that `rule` names.
    ///
    /// A header whose lines are all empty identifies nobody, so it counts as missing: otherwise
    /// everybody who sends it empty would be one caller.
    pub fn read(headers: &HeaderMap, rule: &ScopeRule) -> Result<Self, ScopeMissing> {
        let mut digest = Digest::new(None, Self::LABEL);
        match &rule.source {
            ScopeSource::None => digest.tag(0),
            ScopeSource::Headers(names) => {
                if let Some(name) = names.iter().find(|name| is_missing(headers, name)) {
                    return if rule.anonymous {
                        digest.tag(1);
                        Ok(Self(digest.finish()))
                    } else {
                        Err(ScopeMissing(name.clone()))
                    };
                }
                digest.tag(2);
                digest.number(names.len());
                for name in names {
                    digest.lines(headers, name);
                }
            }
        }
        Ok(Self(digest.finish()))
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

fn is_missing(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().all(HeaderValue::is_empty)
}
