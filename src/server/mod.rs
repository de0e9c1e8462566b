//! The public listener: connections, their deadlines, and answers to what is not HTTP.
//!
//! hyper speaks HTTP/1.1. What it would answer with bare status lines of its own, or not at all, is
//! answered here with [`Canned`] problems: malformed requests, heads over the limit, slow heads.
//! Slow bodies are the gateway's concern.

mod connection;
mod listener;
mod progress;
mod service;
mod wire;

#[cfg(test)]
mod tests;

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;

pub use self::listener::{Drained, Server};

/// How to listen, and for how long to be patient.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Port 0 picks a free one; see [`Server::local_address`].
    pub address: SocketAddr,
    /// From the first byte of a request's head to its last; also from a connection's start to its
    /// first byte.
    pub header_timeout: Duration,
    /// How long a connection may lie idle between two requests.
    pub keep_alive: Duration,
    /// How long a client may take none of the bytes of an answer before it is cut off.
    pub write_timeout: Duration,
    /// How long a closed connection is still read from, so that what the client was sending does
    /// not reset it before it has read our last answer.
    pub linger: Duration,
    /// Connections served at once, over all servers of an address. Further ones wait for a place,
    /// one at each server and the others in the kernel's backlog; nobody is turned away.
    pub max_connections: usize,
    /// Bytes of a request's head, request line included.
    pub max_header_size: usize,
    pub drain: Drain,
    pub canned: Canned,
}

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// How long to go on as if nothing had happened, so that load balancers notice.
    pub delay: Duration,
    /// How long what is in flight may take after that, before it is cut off.
    pub timeout: Duration,
}

/// Whole HTTP/1.1 responses, head and body, for what never becomes a request.
///
/// Each says `Connection: close`, for so it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canned {
    /// For bytes that are not an HTTP/1.1 request.
    pub bad_request: Bytes,
    /// For a head of more than [`Settings::max_header_size`] bytes or a hundred lines.
    pub headers_too_large: Bytes,
    /// For a head that took longer than [`Settings::header_timeout`].
    pub request_timeout: Bytes,
}
