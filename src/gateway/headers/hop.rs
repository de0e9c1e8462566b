//! Fields that are meant for one connection only (RFC 9110 section 7.6.1).

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
};

use super::ours::{IDEMPOTENCY_ERROR_SOURCE, IDEMPOTENCY_EXPIRES};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Never forwarded, whether or not `Connection` names them.
const HOP_BY_HOP: [HeaderName; 9] = [
    KEEP_ALIVE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    PROXY_CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HTTP2_SETTINGS,
];

/// What becomes of a request to switch protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// A keyed request is one request with one answer.
    Remove,
    /// `websocket` goes on; anything else is removed. A switch to `h2c`, above all, would let
    /// requests pass that the gateway never sees.
    Websocket,
}

/// Finds a field that `Connection` names although it must arrive: `Host`, `Content-Length` or one
/// of `protected` (the key's and the scope's). Such a request is malformed.
///
/// Obeying it would let a caller, or a proxy in front, remove what identifies the request.
pub fn connection_names(headers: &HeaderMap, protected: &[HeaderName]) -> Option<HeaderName> {
    let lines = headers.get_all(CONNECTION);
    for name in lines.iter().flat_map(options) {
        let is_named = |field: &&HeaderName| field.as_str().eq_ignore_ascii_case(name);
        if let Some(field) = [HOST, CONTENT_LENGTH].iter().chain(protected).find(is_named) {
            return Some(field.clone());
        }
    }
    None
}

/// Removes from a request what is not for the upstream.
pub fn strip_request(headers: &mut HeaderMap, upgrade: Upgrade) {
    let websocket = match upgrade {
        Upgrade::Remove => None,
        Upgrade::Websocket => take_websocket(headers),
    };
    strip(headers);
    if let Some(protocol) = websocket {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// Removes from an upstream's answer what is not for the client, and what only the gateway says.
pub fn strip_response(headers: &mut HeaderMap, status: StatusCode) {
    let protocol = match status {
        StatusCode::SWITCHING_PROTOCOLS => headers.remove(UPGRADE),
        _ => None,
    };
    strip(headers);
    headers.remove(IDEMPOTENCY_ERROR_SOURCE);
    headers.remove(IDEMPOTENCY_EXPIRES);
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// Removes every field that is for one connection only.
pub(super) fn strip(headers: &mut HeaderMap) {
    let more: Vec<_> = headers.get_all(CONNECTION).iter().skip(1).cloned().collect();
    if let Some(first) = headers.remove(CONNECTION) {
        for line in std::iter::once(&first).chain(&more) {
            for name in options(line) {
                headers.remove(name);
            }
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

fn take_websocket(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let protocol =
        headers.get(UPGRADE).filter(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let lines = headers.get_all(CONNECTION);
    let is_asked = lines.iter().flat_map(options).any(|it| it.eq_ignore_ascii_case("upgrade"));
    protocol.filter(|_| is_asked).cloned()
}

/// The options of one `Connection` line. What is no ASCII can name no field.
fn options(line: &HeaderValue) -> impl Iterator<Item = &str> {
    let parts = line.as_bytes().split(|&byte| byte == b',');
    parts.filter_map(|part| std::str::from_utf8(part.trim_ascii()).ok())
}
