//! The connections among servers, which can go silent.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// A proxy for each server's way to each other server's quorum port.
#[derive(Debug)]
pub(crate) struct Wires(Vec<Wire>);

#[derive(Debug)]
struct Wire {
    from: usize,
    to: usize,
    port: u16,
    flows: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

// === impl Wires ===

impl Wires {
    /// Among three servers whose quorum ports are `base` and their number.
    pub(crate) async fn between(base: u16) -> Self {
        let mut wires = Vec::new();
        for (from, to) in [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let flows = watch::Sender::new(true);
            let quorum = SocketAddr::from(([127, 0, 0, 1], base + u16::try_from(to).unwrap()));
            let accepting = tokio::spawn(accept(listener, quorum, flows.clone()));
            wires.push(Wire { from, to, port, flows, accepting });
        }
        Self(wires)
    }

    /// As the ensemble's script takes it.
    pub(crate) fn described(&self) -> String {
        let wires = self.0.iter().map(|Wire { from, to, port, .. }| format!("{from}:{to}={port}"));
        wires.collect::<Vec<_>>().join(" ")
    }

    /// No byte passes between this server and the others any more.
    pub(crate) fn stall(&self, server: usize) {
        for wire in self.0.iter().filter(|wire| wire.from == server || wire.to == server) {
            wire.flows.send_replace(false);
        }
    }
}

// === impl Wire ===

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, flows: watch::Sender<bool>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let flows = flows.clone();
        tokio::spawn(async move {
            let Some(server) = reach(server).await else { return };
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::select! {
                _ = pass(&mut from_client, &mut to_server, flows.subscribe()) => {}
                _ = pass(&mut from_server, &mut to_client, flows.subscribe()) => {}
            }
        });
    }
}

/// A leader listens a moment after it was elected; a follower that is cut off for that would begin
/// another election.
async fn reach(server: SocketAddr) -> Option<TcpStream> {
    for _ in 0..100 {
        if let Ok(stream) = TcpStream::connect(server).await {
            return Some(stream);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    None
}

async fn pass(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    mut flows: watch::Receiver<bool>,
) -> Option<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = from.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        flows.wait_for(|flows| *flows).await.ok()?;
        to.write_all(&buffer[..length]).await.ok()?;
    }
}
