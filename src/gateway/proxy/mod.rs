//! Sends a request upstream and knows whether a byte of it was written.
//!
//! A connection is driven by the request that uses it, not by a task of its own: the future of the
//! call and then the body of the answer poll it, and it goes back to the pool when both sides of
//! the exchange have ended. Dropping either half way closes the connection.

mod answer;
mod body;
mod connect;
mod endpoint;
mod error;
mod forward;
mod link;
mod pool;
#[cfg(test)]
mod tests;
mod upgrade;
mod wire;

use std::{fmt, io, sync::Arc, time::Duration};

pub use self::{
    answer::UpstreamBody,
    body::RequestBody,
    error::UpstreamError,
    forward::{Forward, Upstream},
};

/// How one upstream is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The upstream's name in the configuration.
    pub name: Arc<str>,
    /// At least one; each is tried at most once for a request.
    pub endpoints: Vec<Endpoint>,
    pub balance: Balance,
    /// For looking a name up, and again for each address that is tried.
    pub connect_timeout: Duration,
    /// Keyed: from connect to the last byte of the answer. Unkeyed: to the head of the answer,
    /// counted anew as long as the request's own body makes progress.
    pub request_timeout: Duration,
    /// A connection that was idle for longer is never used again.
    pub idle_timeout: Duration,
    /// Unkeyed: between two pieces of the answer's body, or of switched connections.
    pub stream_timeout: Duration,
    /// Bytes of the answer's status line and header lines; at most 100 lines in any case.
    pub max_answer_head: usize,
    /// Idle connections that are kept per endpoint.
    pub max_idle: usize,
}

/// A server of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name, or an IP address without brackets.
    pub host: String,
    pub port: u16,
}

/// Which endpoint a request goes to first. Endpoints that did not let themselves be connected to
/// within the last second come last either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The one with the fewest requests in flight from this process; ties rotate.
    LeastRequests,
    RoundRobin,
}

/// Whether `endpoint` lets itself be connected to. Nothing is sent.
///
/// `limit` holds as [`Settings::connect_timeout`] does.
pub async fn reach(endpoint: &Endpoint, limit: Duration) -> io::Result<()> {
    connect::connect(endpoint, limit).await.map(drop)
}

// === impl Endpoint ===

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}
