//! Makes a connection to one endpoint.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use super::Endpoint;

/// Connects to the first address of `endpoint` that lets itself be connected to.
///
/// `limit` holds for looking the name up, and again for each address. Cancel safe: nothing is sent.
pub(super) async fn connect(endpoint: &Endpoint, limit: Duration) -> io::Result<TcpStream> {
    if let Ok(address) = endpoint.host.parse::<IpAddr>() {
        return reach(SocketAddr::new(address, endpoint.port), limit).await;
    }
    let lookup = lookup_host((endpoint.host.as_str(), endpoint.port));
    let addresses = timeout(limit, lookup).await.map_err(|_| too_slow("looking up"))??;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match reach(address, limit).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn reach(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let connecting = TcpStream::connect(address);
    let stream = timeout(limit, connecting).await.map_err(|_| too_slow("connecting"))??;
    // A request is written whole: waiting for more to fill a packet only costs time.
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn too_slow(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("{what} took too long"))
}
