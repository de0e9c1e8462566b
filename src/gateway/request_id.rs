//! The id under which a request is found in the logs of everybody who saw it.

use http::{Extensions, HeaderMap, HeaderValue};

use super::headers::{self, REQUEST_ID};

/// A request's id, visible ASCII. Travels among the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

// === impl RequestId ===

impl RequestId {
    /// The client's id where it is fit for a log line; else one made here, put into `headers`.
    pub(super) fn ensure(headers: &mut HeaderMap) -> Self {
        Self(headers::request_id(headers))
    }

    /// The id among the extensions; a fresh one outside the gateway's own stack.
    pub(super) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(|| Self::ensure(&mut HeaderMap::new()))
    }

    /// Puts the id on an answer, in the place of one that was stored with it.
    pub(super) fn set(&self, headers: &mut HeaderMap) {
        headers.insert(REQUEST_ID, self.0.clone());
    }

    /// Puts the id on an answer that has none of its own.
    pub(super) fn set_if_missing(&self, headers: &mut HeaderMap) {
        headers.entry(REQUEST_ID).or_insert_with(|| self.0.clone());
    }

    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}
