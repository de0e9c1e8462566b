//! The servers behind the gateway, and how long each step of a call to them may take.

use std::{fmt, time::Duration};

/// A named group of interchangeable servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub name: String,
    /// Never empty; no two are equal.
    pub endpoints: Vec<Endpoint>,
    pub balance: Balance,
    pub connect_timeout: Duration,
    /// Keyed requests: from connect to the last byte, so it bounds how long a key is held.
    /// Unkeyed ones: to the response head.
    pub request_timeout: Duration,
    /// A keyed request never goes out on a connection that was idle for longer.
    pub idle_timeout: Duration,
    /// Unkeyed requests: between bytes.
    pub stream_timeout: Duration,
}

/// One server, reached over clear-text HTTP/1.1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A lower-case name or an address, an IPv6 one without its brackets.
    pub host: String,
    /// 80 unless written.
    pub port: u16,
    /// `host:port`, as it stands in a URI: an IPv6 address in brackets.
    pub authority: String,
}

/// How an endpoint is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    #[default]
    LeastRequests,
    RoundRobin,
}

// === impl Endpoint ===

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}
