//! What an upstream answered, in the form in which it is kept and given again.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// An answer without its connection: status, kept header lines, body as it came.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse {
    pub status: StatusCode,
    /// Names without regard to case, values byte for byte, order kept among the lines of a name.
    pub headers: HeaderMap,
    pub body: StoredBody,
}

/// The body of a [`StoredResponse`].
#[derive(Clone, PartialEq, Eq)]
pub enum StoredBody {
    /// All of it, byte for byte.
    Kept(Bytes),
    /// It passed the route's `max_stored_body`; only the fact is kept (a *tombstone*).
    TooLarge,
}

// === impl StoredResponse ===

impl StoredResponse {
    /// Whether the answer itself is gone, and only the fact that it was given is known.
    pub fn is_tombstone(&self) -> bool {
        matches!(self.body, StoredBody::TooLarge)
    }

    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> usize {
        let headers =
            self.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 64);
        let body = match &self.body {
            StoredBody::Kept(body) => body.len(),
            StoredBody::TooLarge => 0,
        };
        headers.sum::<usize>() + body + 256
    }
}

impl fmt::Debug for StoredResponse {
    /// Headers and body can hold what only the caller may see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredResponse")
            .field("status", &self.status)
            .field("headers", &self.headers.len())
            .field("body", &self.body)
            .finish()
    }
}

// === impl StoredBody ===

impl fmt::Debug for StoredBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(body) => write!(f, "Kept(<{} bytes>)", body.len()),
            Self::TooLarge => f.write_str("TooLarge"),
        }
    }
}
