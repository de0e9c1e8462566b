//! Which header lines of an answer are given again.

use http::{
    HeaderMap, HeaderName,
    header::{CONTENT_LENGTH, DATE, SERVER, SET_COOKIE, WWW_AUTHENTICATE},
};

use super::{
    hop,
    ours::{IDEMPOTENCY_ERROR_SOURCE, IDEMPOTENCY_EXPIRES},
};

/// What is not the answer to the operation, but to one caller at one time, or about one message.
const OF_THE_MOMENT: [HeaderName; 7] = [
    CONTENT_LENGTH,
    DATE,
    SERVER,
    SET_COOKIE,
    WWW_AUTHENTICATE,
    IDEMPOTENCY_ERROR_SOURCE,
    IDEMPOTENCY_EXPIRES,
];

/// The header lines to store: without those for one connection, those of the moment, the replay
/// header and the route's own `drop_headers`. Framing is made anew for each replay.
///
/// Values stay byte for byte, and the lines of one name in their order.
#[must_use]
pub fn storable(
    mut headers: HeaderMap,
    replay_header: &HeaderName,
    drop_headers: &[HeaderName],
) -> HeaderMap {
    hop::strip(&mut headers);
    for name in OF_THE_MOMENT.iter().chain([replay_header]).chain(drop_headers) {
        headers.remove(name);
    }
    headers
}
