//! The digest that tells a retry from a different request under the same key.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};

use super::Secret;

/// How a fingerprint is computed; stored with the record, so that a retry is compared by the
/// recipe of the first request whatever the configuration says now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Of the encoding below; 1 is the only one so far.
    pub version: u8,
    pub body: BodyMode,
    /// In the order of the configuration.
    pub headers: Vec<HeaderName>,
    /// Whether the authority counts: not where the route matches one host only.
    pub authority: bool,
}

/// What of the body counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BodyMode {
    #[default]
    Raw,
    /// RFC 8785 canonical form without the members at these JSON pointers (RFC 6901).
    Json {
        ignore: Vec<String>,
    },
    Form,
    /// By part: a change of boundary alone is no difference.
    Multipart,
    None,
}

/// A digest with the recipe that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub recipe: Arc<Recipe>,
    pub digest: [u8; 32],
}

/// What a request is compared by. Everything in it is as the client sent it, after hop-by-hop
/// fields were removed.
#[derive(Clone)]
pub struct Subject {
    pub method: Method,
    /// Lower case, as the route matched it; empty where the request named none.
    pub authority: Box<str>,
    pub path: Box<str>,
    /// `None` without a question mark; an empty query is another request.
    pub query: Option<Box<str>>,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// HMAC-SHA-256 instead of SHA-256 when set.
    pub secret: Option<Arc<Secret>>,
}

// === impl Subject ===

impl Subject {
    /// Fingerprints the request by `recipe`.
    pub fn fingerprint(&self, recipe: &Arc<Recipe>) -> Fingerprint {
        let _ = recipe;
        todo!("domain helper")
    }

    /// Whether this request is the one that `stored` was made of, by the *stored* recipe. A recipe
    /// of an unknown version matches nothing.
    pub fn matches(&self, stored: &Fingerprint) -> bool {
        self.fingerprint(&stored.recipe).digest == stored.digest
    }
}

impl fmt::Debug for Subject {
    /// Headers, query and body can hold what only the caller may see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("method", &self.method).finish_non_exhaustive()
    }
}
