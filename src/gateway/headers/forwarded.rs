//! Who asked, through whom, and how: `X-Forwarded-*` and `Via`.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue, Uri, Version,
    header::{FORWARDED, HOST, VIA},
};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The other end of a client's connection, in the form in which it is passed on.
///
/// Made once per connection, so that a request only copies a reference.
#[derive(Clone, Debug)]
pub struct Peer {
    address: Option<HeaderValue>,
    scheme: HeaderValue,
    is_trusted: bool,
}

// === impl Peer ===

impl Peer {
    /// A peer that speaks clear text; what it says of its own clients is believed if its address
    /// is in `trusted`. An IPv4 address inside an IPv6 one counts as IPv4.
    pub fn new(address: IpAddr, trusted: &[IpNet]) -> Self {
        let address = address.to_canonical();
        Self {
            is_trusted: trusted.iter().any(|network| network.contains(&address)),
            address: HeaderValue::try_from(address.to_string()).ok(),
            scheme: HeaderValue::from_static("http"),
        }
    }

    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }
}

/// Tells the upstream who asked: after what a trusted `peer` says, instead of what another says.
///
/// Of an untrusted peer `Forwarded` (RFC 7239) is removed, since it claims the same things.
pub fn forwarded_by(headers: &mut HeaderMap, peer: &Peer) {
    if !peer.is_trusted {
        headers.remove(FORWARDED);
    }
    let host = headers.get(HOST).cloned();
    let said = [
        (X_FORWARDED_FOR, peer.address.clone()),
        (X_FORWARDED_PROTO, Some(peer.scheme.clone())),
        (X_FORWARDED_HOST, host),
    ];
    for (name, value) in said {
        match value {
            Some(value) if peer.is_trusted => append(headers, name, value),
            Some(value) => drop(headers.insert(name, value)),
            None if peer.is_trusted => {}
            None => drop(headers.remove(name)),
        }
    }
}

/// Makes `Host` say what an absolute target names, whatever it said before (RFC 9112 section
/// 3.2.2): route, fingerprint and upstream must not be told of two hosts.
pub fn host_from_target(head: &Uri, headers: &mut HeaderMap) {
    let Some(authority) = head.authority() else { return };
    let host = authority.as_str().rsplit('@').next().unwrap_or_default();
    if let Ok(host) = HeaderValue::from_str(host) {
        headers.insert(HOST, host);
    }
}

/// Names the gateway among those that passed the request on (RFC 9110 section 7.6.3). Answers do
/// not carry it: there a gateway may leave it out, and what stands before an API usually does.
pub fn via(headers: &mut HeaderMap, received: Version) {
    let us = match received {
        Version::HTTP_10 => "1.0 oncegate",
        _ => "1.1 oncegate",
    };
    headers.append(VIA, HeaderValue::from_static(us));
}

/// Adds to the end of a list, and makes one line of it: many upstreams read only the first.
fn append(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    let mut list = Vec::new();
    for line in headers.get_all(&name).iter().filter(|line| !line.is_empty()) {
        list.extend_from_slice(line.as_bytes());
        list.extend_from_slice(b", ");
    }
    if list.is_empty() {
        headers.insert(name, value);
        return;
    }
    list.extend_from_slice(value.as_bytes());
    if let Ok(list) = HeaderValue::from_maybe_shared(bytes::Bytes::from(list)) {
        headers.insert(name, list);
    }
}
