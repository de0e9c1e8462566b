//! Which header may be used for what.

use http::HeaderName;

use super::value::Value;

/// Concern one connection only and are removed before anything is read (RFC 9110 section 7.6.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Say where a message goes or ends, or are set by the gateway.
const RESERVED: [&str; 17] = [
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "host",
    "idempotency-attempt",
    "idempotency-error-source",
    "idempotency-expires",
    "idempotency-fencing-token",
    "set-cookie",
    "stripe-should-retry",
    "via",
    "www-authenticate",
    "x-request-id",
];

/// Written anew by the gateway before a request goes upstream.
const FORWARDED: [&str; 4] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

/// A header that the gateway reads a key from or writes an answer's kind to.
pub(super) fn read_own(value: &Value<'_>) -> Option<HeaderName> {
    let name = read_end_to_end(value)?;
    let taken = RESERVED.iter().chain(&FORWARDED);
    if taken.into_iter().any(|taken| *taken == name.as_str()) {
        return value.is_not("has a meaning of its own", "take another header");
    }
    Some(name)
}

/// A header of a message that outlives a connection.
pub(super) fn read_end_to_end(value: &Value<'_>) -> Option<HeaderName> {
    let name = value.header()?;
    if HOP_BY_HOP.contains(&name.as_str()) {
        return value.is_not("belongs to one connection and is never passed on", "leave it out");
    }
    Some(name)
}

/// A header of requests that says who calls.
pub(super) fn read_identity(value: &Value<'_>) -> Option<HeaderName> {
    let name = read_end_to_end(value)?;
    if matches!(name.as_str(), "content-length" | "date" | "x-request-id" | "traceparent") {
        return value.is_not(
            "differs from retry to retry, so that each would be a new key",
            "name a header that identifies the caller, like `X-Api-Key`",
        );
    }
    Some(name)
}

/// A header that replays leave out.
pub(super) fn read_dropped(value: &Value<'_>) -> Option<HeaderName> {
    let name = read_end_to_end(value)?;
    if matches!(name.as_str(), "content-length" | "idempotency-expires") {
        return value.is_not("is made anew for each answer", "leave it out");
    }
    Some(name)
}
