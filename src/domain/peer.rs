//! Who is at the other end of a connection.

use std::net::SocketAddr;

/// The address that a request's connection comes from, among the request's extensions.
///
/// It is what the kernel says, never what a header claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(pub SocketAddr);
