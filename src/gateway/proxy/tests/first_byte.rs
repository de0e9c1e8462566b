//! The last look before the first byte, where the runtime has not yet heard of what happened.
//!
//! The peers here are blocking sockets in the hands of the test: what they do is done in the kernel
//! at once, and the runtime, which hears of it only when the test waits, cannot help.

use std::{
    future::poll_fn,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    pin::Pin,
    sync::{Arc, mpsc},
    thread,
};

use bytes::Bytes;
use http_body::SizeHint;
use hyper::rt::Write as _;

use super::support::*;
use crate::{
    gateway::proxy::wire::{Stage, Wire, WireState},
    ledger::Gate,
};

/// What a peer does before the request.
type Act = fn(TcpStream) -> Option<TcpStream>;

async fn pair() -> (tokio::net::TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (stream, listener.accept().unwrap().0)
}

async fn wire() -> (Wire, Arc<WireState>, TcpStream) {
    let (stream, peer) = pair().await;
    let (wire, state) = Wire::new(stream);
    (wire, state, peer)
}

async fn write(wire: &mut Wire) -> std::io::Result<usize> {
    poll_fn(|cx| Pin::new(&mut *wire).poll_write(cx, b"GET / HTTP/1.1\r\n\r\n")).await
}

#[tokio::test]
async fn nothing_is_written_to_a_peer_that_has_closed_or_spoken_unasked() {
    let does: [(Act, ErrorKind); 3] = [
        (|_| None, ErrorKind::UnexpectedEof),
        (
            |peer| {
                socket2::SockRef::from(&peer).set_linger(Some(std::time::Duration::ZERO)).unwrap();
                None
            },
            ErrorKind::ConnectionReset,
        ),
        (
            |mut peer| {
                peer.write_all(b"HTTP/1.1 408 Too Slow\r\n\r\n").unwrap();
                Some(peer)
            },
            ErrorKind::InvalidData,
        ),
    ];
    for (peer_does, expected) in does {
        let (mut wire, state, peer) = wire().await;
        let gate = Gate::new(None);
        state.arm(Some(gate.clone()));
        let _peer = peer_does(peer);
        let error = within(write(&mut wire)).await.unwrap_err();
        assert_eq!(error.kind(), expected);
        assert_eq!((state.stage(), state.written()), (Stage::Armed, 0));
        assert!(!gate.is_passed());
    }
}

#[tokio::test]
async fn a_first_write_that_fails_has_written_nothing_and_the_gate_is_taken_back() {
    let (stream, _peer) = pair().await;
    socket2::SockRef::from(&stream).shutdown(Shutdown::Write).unwrap();
    let (mut wire, state) = Wire::new(stream);
    let gate = Gate::new(None);
    state.arm(Some(gate.clone()));
    let error = within(write(&mut wire)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert_eq!((state.stage(), state.written()), (Stage::Armed, 0));
    assert!(gate.is_passed(), "until the wire is dropped it might be tried again");
    drop(wire);
    assert!(!gate.is_passed());
}

#[tokio::test]
async fn a_write_that_succeeds_says_so() {
    let (mut wire, state, _peer) = wire().await;
    let gate = Gate::new(None);
    state.arm(Some(gate.clone()));
    assert!(within(write(&mut wire)).await.unwrap() > 0);
    assert_eq!(state.stage(), Stage::Written);
    drop(wire);
    assert!(gate.is_passed());
}

/// Answers one request a connection and hands the connection over.
fn handing_over() -> (SocketAddr, mpsc::Receiver<(Vec<u8>, TcpStream)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (hand, handed) = mpsc::channel();
    thread::spawn(move || {
        while let Ok((mut peer, _)) = listener.accept() {
            let mut request = Vec::new();
            while !request.ends_with(b"end") {
                let mut part = [0; 1024];
                let length = peer.read(&mut part).unwrap();
                request.extend_from_slice(&part[..length]);
            }
            peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1").unwrap();
            hand.send((request, peer)).unwrap();
        }
    });
    (address, handed)
}

// R16: with the close seen only by the look before the first byte.
#[tokio::test]
async fn a_connection_that_died_unheard_is_replaced_and_the_request_goes_out_whole() {
    within(async {
        let (address, handed) = handing_over();
        let upstream = to(address);
        for round in 0..10 {
            let request = if round % 2 == 0 {
                keyed("/", "the end").0
            } else {
                let (request, pieces) = streamed(SizeHint::with_exact(7));
                pieces.try_send(Ok(Bytes::from_static(b"the "))).unwrap();
                tokio::spawn(async move { pieces.send(Ok(Bytes::from_static(b"end"))).await });
                request
            };
            assert_eq!(text(upstream.forward(request).await).await.unwrap(), "1");
            let (request, peer) = handed.recv().unwrap();
            assert!(request.ends_with(b"\r\n\r\nthe end"));
            // Closed between the last wait and the next request.
            drop(peer);
        }
        assert!(handed.try_recv().is_err());
    })
    .await;
}
