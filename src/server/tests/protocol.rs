//! What HTTP/1.1 promises to those who speak it.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::support::{Echo, SOON, read_to_end, read_until, settings, start};
use crate::{domain::Peer, server::Settings};

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    let running = start(&settings());
    let mut stream = running.connect().await;
    for target in ["/one", "/two"] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, ";").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with(&format!("first {target} ;")), "{answer}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let running = start(&settings());
    let answers = running
        .exchange(
            "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi\
             GET /b HTTP/1.1\r\nHost: x\r\n\r\n\
             GET /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        )
        .await;
    let order: Vec<_> = ["first /a hi;", "first /b ;", "first /c ;"]
        .map(|answer| answers.find(answer).unwrap_or_else(|| panic!("{answers}")))
        .into();
    assert!(order.is_sorted(), "{answers}");
}

#[tokio::test]
async fn an_http_1_0_client_is_answered_and_the_connection_closed() {
    let running = start(&settings());
    let answer = running.exchange("GET /old HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("first /old ;"), "{answer}");
}

#[tokio::test]
async fn a_client_that_asks_to_close_gets_its_answer_and_the_end() {
    let running = start(&settings());
    let answer = running.exchange("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.to_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.ends_with("first /x ;"), "{answer}");
}

#[tokio::test]
async fn a_client_that_has_closed_its_side_still_gets_its_answer() {
    let mut running = start(&settings());
    let mut stream = running.connect().await;
    stream.write_all(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    stream.shutdown().await.unwrap();
    running.next_seen().await;

    running.echo.gate.add_permits(1);

    assert!(read_to_end(&mut stream).await.ends_with("first /gated ;"));
}

#[tokio::test]
async fn the_service_is_told_the_peer_and_no_head_can_forge_it() {
    let mut running = start(&settings());
    let mut stream = running.connect().await;
    let request = b"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 8.8.8.8\r\n\r\n";
    stream.write_all(request).await.unwrap();

    let seen = running.next_seen().await;

    assert_eq!(seen.peer, Some(Peer(stream.local_addr().unwrap())));
}

#[tokio::test]
async fn the_next_request_goes_to_the_new_service_and_the_one_in_flight_ends_with_the_old_one() {
    let mut running = start(&settings());
    let mut stream = running.connect().await;
    stream.write_all(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    running.next_seen().await;

    running.services.send_replace(Echo { name: "second", ..running.echo.clone() });
    running.echo.gate.add_permits(1);

    assert!(read_until(&mut stream, ";").await.ends_with("first /gated ;"));
    stream.write_all(b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(read_until(&mut stream, ";").await.ends_with("second /next ;"));
}

#[tokio::test]
async fn a_connection_over_the_bound_waits_for_a_place_and_is_then_served() {
    let mut running = start(&Settings { max_connections: 1, ..settings() });
    let mut first = running.connect().await;
    first.write_all(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert_eq!(running.next_seen().await.target, "/gated");
    let mut second = running.connect().await;
    second.write_all(b"GET /second HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();

    running.echo.gate.add_permits(1);
    read_until(&mut first, ";").await;
    // Were it served now, the service would see it in between.
    for _ in 0..20 {
        first.write_all(b"GET /first HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert_eq!(running.next_seen().await.target, "/first");
        read_until(&mut first, ";").await;
    }
    drop(first);

    assert!(read_until(&mut second, ";").await.ends_with("first /second ;"));
}

#[tokio::test]
async fn an_answer_that_came_before_the_whole_body_is_not_lost_to_a_reset() {
    let running = start(&settings());
    let mut stream = running.connect().await;
    let length = 16 << 20;
    let head = format!("POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let body = vec![b'x'; 4 << 20];

    // More than the kernel's buffers take: without somebody who reads, the client is stuck.
    writing.write_all(&body).await.unwrap();
    writing.shutdown().await.unwrap();

    assert!(read_to_end(&mut reading).await.ends_with("unread"));
}

#[tokio::test]
async fn part_of_an_answer_never_passes_for_all_of_it() {
    let running = start(&settings());
    // To a client of HTTP/1.0 an orderly end of the connection is the end of the body.
    for version in ["1.0", "1.1"] {
        let mut stream = running.connect().await;
        let request = format!("GET /broken HTTP/{version}\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();

        let mut answer = Vec::new();
        let error = timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap().unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{version}");
    }
}

#[tokio::test]
async fn a_client_that_asks_before_it_sends_its_body_is_told_to_go_on() {
    let running = start(&settings());
    let mut stream = running.connect().await;
    let head = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head).await.unwrap();
    assert_eq!(read_until(&mut stream, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");

    stream.write_all(b"hi").await.unwrap();

    assert!(read_until(&mut stream, ";").await.ends_with("first /x hi;"));
}

#[tokio::test]
async fn an_upgraded_connection_belongs_to_whoever_upgraded_it() {
    let running = start(&settings());
    let mut stream = running.connect().await;
    let request =
        b"GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let head = read_until(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");

    stream.write_all(b"hello\n").await.unwrap();

    assert_eq!(read_to_end(&mut stream).await, "HELLO\n");
}
