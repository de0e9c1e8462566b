//! The fields by which the gateway tells an upstream or a client something.

use http::{HeaderMap, HeaderName};

use crate::domain::FencingToken;

/// To the upstream: which attempt this is; 1 is the first.
pub const IDEMPOTENCY_ATTEMPT: HeaderName = HeaderName::from_static("idempotency-attempt");
/// To the upstream: strictly increasing per key.
pub const IDEMPOTENCY_FENCING_TOKEN: HeaderName =
    HeaderName::from_static("idempotency-fencing-token");
/// To the client: the answer is the gateway's own.
pub const IDEMPOTENCY_ERROR_SOURCE: HeaderName =
    HeaderName::from_static("idempotency-error-source");
/// To the client: until when the answer is given again.
pub const IDEMPOTENCY_EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");

/// Removes a client's own values of the fields that only the gateway may send upstream.
///
/// Also spelled with underscores: servers that hand fields over as environment variables do not
/// tell the spellings apart.
pub fn strip_forged(headers: &mut HeaderMap) {
    let forged: Vec<_> = headers.keys().filter(|name| is_forged(name)).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
}

/// Tells the upstream which attempt of which key's life this is. Place it after every removal.
pub fn add_attempt(headers: &mut HeaderMap, attempt: u32, token: FencingToken) {
    headers.insert(IDEMPOTENCY_ATTEMPT, attempt.into());
    headers.insert(IDEMPOTENCY_FENCING_TOKEN, token.get().into());
}

fn is_forged(name: &HeaderName) -> bool {
    let is_spelling_of = |ours: &HeaderName| {
        let (name, ours) = (name.as_str().as_bytes(), ours.as_str().as_bytes());
        let same = |(a, b): (&u8, &u8)| a == b || (*a == b'_' && *b == b'-');
        name.len() == ours.len() && name.iter().zip(ours).all(same)
    };
    is_spelling_of(&IDEMPOTENCY_ATTEMPT) || is_spelling_of(&IDEMPOTENCY_FENCING_TOKEN)
}
