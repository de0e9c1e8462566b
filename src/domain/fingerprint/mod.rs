//! The digest that tells a retry from a different request under the same key.

mod body;
mod form;
mod json;
mod multipart;
mod recipe;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};

pub use self::{
    json::is_json_pointer,
    recipe::{BodyMode, Recipe},
};
use super::{Secret, digest::Digest};

/// A digest with the recipe that made it.
///
/// Its serialised form is part of every stored record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    #[serde(with = "recipe::shared")]
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

const LABEL: &str = "oncegate fingerprint";

// === impl Fingerprint ===

impl Fingerprint {
    /// Whether `subject`, whose fingerprint this is, is the request that `stored` was made of.
    ///
    /// The same as [`Subject::matches`], but the request is hashed again only where the stored
    /// recipe is another one.
    pub fn is_retry_of(&self, stored: &Self, subject: &Subject) -> bool {
        if self.recipe.version == Recipe::VERSION && self.recipe == stored.recipe {
            self.digest == stored.digest
        } else {
            subject.matches(stored)
        }
    }
}

// === impl Subject ===

impl Subject {
    /// Fingerprints the request by `recipe`, whose version is [`Recipe::VERSION`].
    ///
    /// A body that counts raw is hashed where it lies; the other modes take memory in proportion
    /// to the body.
    pub fn fingerprint(&self, recipe: &Arc<Recipe>) -> Fingerprint {
        let mut digest = Digest::new(self.secret.as_deref(), LABEL);
        digest.tag(recipe.version);
        digest.bytes(self.method.as_str().as_bytes());
        digest.option(recipe.authority.then_some(self.authority.as_bytes()));
        digest.bytes(self.path.as_bytes());
        digest.option(self.query.as_deref().map(str::as_bytes));
        digest.number(recipe.headers.len());
        for name in &recipe.headers {
            digest.lines(&self.headers, name);
        }
        body::count(&mut digest, &self.headers, &self.body, &recipe.body);
        Fingerprint { recipe: Arc::clone(recipe), digest: digest.finish() }
    }

    /// Whether this request is the one that `stored` was made of, by the *stored* recipe. A recipe
    /// of an unknown version matches nothing.
    pub fn matches(&self, stored: &Fingerprint) -> bool {
        stored.recipe.version == Recipe::VERSION
            && self.fingerprint(&stored.recipe).digest == stored.digest
    }
}

impl fmt::Debug for Subject {
    /// Headers, query and body can hold what only the caller may see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("method", &self.method).finish_non_exhaustive()
    }
}
