//! Several servers of one address.

use std::{io, net::SocketAddr};

use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    sync::{oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use super::support::{SOON, echo, read_until, settings};
use crate::server::{Drained, Server, Settings};

/// A server that runs until its sender is dropped.
type Serving = (oneshot::Sender<()>, JoinHandle<Drained>);

/// Serves two servers of one address.
fn serve_two(settings: &Settings) -> (SocketAddr, Vec<Serving>) {
    let servers = Server::bind(settings, 2).unwrap();
    let address = servers[0].local_address();
    let (_, services) = watch::channel(echo().0);
    let serve = |server: Server| {
        let (shutdown, stopped) = oneshot::channel();
        let serving = server.serve(services.clone(), async { drop(stopped.await) });
        (shutdown, tokio::spawn(serving))
    };
    (address, servers.into_iter().map(serve).collect())
}

async fn ask(stream: &mut TcpStream) {
    stream.write_all(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    read_until(stream, "first /a ;").await;
}

#[tokio::test]
async fn every_connection_is_served_whichever_server_it_comes_to() {
    let (address, _serving) = serve_two(&settings());
    for _ in 0..32 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        timeout(SOON, ask(&mut stream)).await.unwrap();
    }
}

/// A place that an idle server kept for itself would leave the only connection unserved.
#[tokio::test]
async fn the_bound_on_connections_is_one_for_all_servers() {
    let (address, _serving) = serve_two(&Settings { max_connections: 1, ..settings() });
    for _ in 0..16 {
        let mut first = TcpStream::connect(address).await.unwrap();
        timeout(SOON, ask(&mut first)).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        let mut asking = Box::pin(ask(&mut second));
        assert!(is_pending(&mut asking).await, "a second connection is served");
        drop(first);
        timeout(SOON, asking).await.unwrap();
    }
}

/// Whether the future is still pending after the runtime has seen to everything else.
async fn is_pending(future: &mut (impl Future + Unpin)) -> bool {
    for _ in 0..16 {
        if timeout(std::time::Duration::ZERO, &mut *future).await.is_ok() {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

#[tokio::test]
async fn an_address_that_is_taken_is_noticed() {
    let first = Server::bind(&settings(), 2).unwrap();
    let taken = Settings { address: first[0].local_address(), ..settings() };
    let refused = Server::bind(&taken, 2).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
}
