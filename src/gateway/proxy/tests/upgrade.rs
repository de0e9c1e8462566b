//! Switched protocols, through a real server on the client's side.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::support::*;
use crate::gateway::proxy::{RequestBody, Upstream};

/// A gateway that does nothing but forward, on one connection.
async fn gateway(upstream: Upstream) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = Arc::new(upstream);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service_fn(move |request: Request<Incoming>| {
            let upstream = Arc::clone(&upstream);
            async move {
                let answer = upstream.forward(request.map(RequestBody::stream)).await;
                Ok::<_, Infallible>(answer.unwrap())
            }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connection.with_upgrades().await.unwrap();
    });
    address
}

async fn read(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        assert!(stream.read_buf(&mut text).await.unwrap() > 0, "closed early");
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn after_a_switch_of_protocols_bytes_go_both_ways_until_one_side_closes() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            let head = connection.head().await.unwrap();
            assert!(head.contains("upgrade: websocket"), "{head}");
            connection
                .write(
                    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                     upgrade: websocket\r\n\r\nearly;",
                )
                .await;
            assert_eq!(connection.until(b";").await, b"ping;");
            connection.write("pong;").await;
            connection.ended().await.unwrap();
        })
        .await;
        let mut client = TcpStream::connect(gateway(to(address)).await).await.unwrap();
        let ask =
            b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        client.write_all(ask).await.unwrap();
        let head = read(&mut client, "early;").await;
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        client.write_all(b"ping;").await.unwrap();
        assert_eq!(read(&mut client, "pong;").await, "pong;");
        client.shutdown().await.unwrap();
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn switched_connections_on_which_nothing_moves_are_closed() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.head().await;
            connection
                .write(
                    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                     upgrade: websocket\r\n\r\nearly;",
                )
                .await;
            connection.ended().await.unwrap();
        })
        .await;
        let mut settings = settings(&[address]);
        settings.stream_timeout = Duration::from_millis(50);
        let address = gateway(Upstream::new(settings)).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let ask =
            b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        client.write_all(ask).await.unwrap();
        read(&mut client, "early;").await;
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn an_upstream_may_refuse_to_switch() {
    within(async {
        let (address, received) = upstream(echo).await;
        let mut client = TcpStream::connect(gateway(to(address)).await).await.unwrap();
        for number in ["1", "2"] {
            let ask =
                b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
            client.write_all(ask).await.unwrap();
            let answer = read(&mut client, &format!("\r\n\r\n{number}")).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        assert_eq!((received.count(), received.connections()), (2, 1));
    })
    .await;
}

#[tokio::test]
async fn bodies_stream_through_a_real_server_and_the_connections_are_used_again() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            while let Some((_, body)) = connection.request().await {
                let length = body.len();
                connection.ok(&format!("{length};")).await;
            }
        })
        .await;
        let mut client = TcpStream::connect(gateway(to(address)).await).await.unwrap();
        for length in [0, 1, 100, 70_000, 3_000_000] {
            let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
            client.write_all(head.as_bytes()).await.unwrap();
            client.write_all(&vec![b'x'; length]).await.unwrap();
            let answer = read(&mut client, ";").await;
            assert!(answer.ends_with(&format!("\r\n\r\n{length};")), "{answer}");
        }
        assert_eq!((received.count(), received.connections()), (5, 1));
    })
    .await;
}
