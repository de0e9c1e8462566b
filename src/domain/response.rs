//! What an upstream answered, in the form in which it is kept and given again.

use std::fmt;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode};

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

    /// The same answer in memory of its own, which is as large as what it holds.
    ///
    /// The values and body that a connection gives are slices of its read buffer, and a slice of
    /// a few bytes keeps all of a buffer from being used again or freed.
    ///
    /// # Panics
    ///
    /// Never: each value is copied from one that was valid.
    #[must_use]
    pub fn compact(mut self) -> Self {
        let body = match &self.body {
            StoredBody::Kept(body) => body.len(),
            StoredBody::TooLarge => 0,
        };
        let values: usize = self.headers.values().map(HeaderValue::len).sum();
        let mut memory = BytesMut::with_capacity(values + body);
        let mut copied = |bytes: &[u8]| {
            memory.extend_from_slice(bytes);
            memory.split().freeze()
        };
        for value in self.headers.values_mut() {
            // The bytes of a value are always a value.
            if let Ok(mut copy) = HeaderValue::from_maybe_shared(copied(value.as_bytes())) {
                copy.set_sensitive(value.is_sensitive());
                *value = copy;
            }
        }
        if let StoredBody::Kept(body) = &mut self.body {
            *body = copied(body);
        }
        self
    }

    /// About how many bytes it takes in memory, once [compact](Self::compact).
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::header::{AUTHORIZATION, VIA};

    use super::*;

    struct Buffer(Arc<[u8]>);

    impl AsRef<[u8]> for Buffer {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    #[test]
    fn a_compact_answer_is_the_same_and_lets_go_of_the_buffer_that_it_came_in() {
        let memory: Arc<[u8]> = Arc::from(&b"one two secret {}"[..]);
        let buffer = Bytes::from_owner(Buffer(Arc::clone(&memory)));
        let value = |range| HeaderValue::from_maybe_shared(buffer.slice(range)).unwrap();
        let mut headers = HeaderMap::new();
        headers.append(VIA, value(0..3));
        headers.append(VIA, value(4..7));
        headers.append(AUTHORIZATION, value(8..14));
        headers.get_mut(AUTHORIZATION).unwrap().set_sensitive(true);
        let body = StoredBody::Kept(buffer.slice(15..17));
        let given = StoredResponse { status: StatusCode::CREATED, headers, body };
        drop(buffer);

        let compact = given.clone().compact();

        assert_eq!(compact, given);
        assert!(compact.headers[AUTHORIZATION].is_sensitive());
        assert_eq!(Arc::strong_count(&memory), 2);
        drop(given);
        assert_eq!(Arc::strong_count(&memory), 1);
    }
}
