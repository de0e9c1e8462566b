//! The id under which a request is found in the logs of everybody who saw it.

use std::sync::Arc;

use http::{Extensions, HeaderMap, HeaderValue};
use uuid::Uuid;

use super::headers::X_REQUEST_ID;

/// A request's id: the client's, or one made here. Travels among the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub Arc<str>);

/// Longest id taken over from a client, in bytes.
const MAX_LENGTH: usize = 128;

// === impl RequestId ===

impl RequestId {
    /// Keeps the client's id where it is fit for a log line; else makes one and sets the header.
    pub fn ensure(headers: &mut HeaderMap) -> Self {
        let kept = headers
            .get(X_REQUEST_ID)
            .filter(|value| (1..=MAX_LENGTH).contains(&value.len()))
            .and_then(|value| value.to_str().ok())
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
        if let Some(text) = kept {
            return Self(Arc::from(text));
        }
        let id = Self::random();
        // Replaces every line that was not fit.
        id.set(headers);
        id
    }

    /// The id among the extensions; a fresh one outside the gateway's own stack.
    pub(super) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(Self::random)
    }

    /// Puts the id on an answer, in the place of one that was stored with it.
    pub(super) fn set(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            headers.insert(X_REQUEST_ID, value);
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn random() -> Self {
        let mut text = [0; uuid::fmt::Simple::LENGTH];
        Self(Arc::from(&*Uuid::new_v4().simple().encode_lower(&mut text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ensured(values: &[&'static [u8]]) -> (RequestId, HeaderMap) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(X_REQUEST_ID, HeaderValue::from_bytes(value).unwrap());
        }
        (RequestId::ensure(&mut headers), headers)
    }

    #[test]
    fn an_id_of_visible_ascii_is_kept() {
        assert_eq!(ensured(&[b"req-1"]).0.as_str(), "req-1");
    }

    #[test]
    fn any_other_id_is_replaced_on_its_way_upstream() {
        let long = &[b'a'; 129];
        for value in [&b""[..], b"two words", b"\xff", long] {
            let (id, headers) = ensured(&[value]);
            assert_eq!(id.as_str().len(), 32);
            assert_eq!(headers.get_all(X_REQUEST_ID).iter().collect::<Vec<_>>(), [id.as_str()]);
        }
    }
}
