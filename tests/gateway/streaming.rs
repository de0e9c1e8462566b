//! Unkeyed routes stream both ways: memory does not grow with a body, and pieces do not wait.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::support::{Client, Config, Gateway, Step, Upstream, get, soon};

const LENGTH: usize = 2 * 1024 * 1024 * 1024;
const MEBIBYTE: usize = 1024 * 1024;

/// Far above what two connections need, far below the body.
const MAX_RESIDENT_KIB: u64 = 128 * 1024;

/// Reads bodies and throws them away, then answers with one of the same length.
async fn echo_of_length(listener: TcpListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let begun = skip_head(&mut stream).await;
    skip(&mut stream, LENGTH - begun).await;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    give(&mut stream).await;
}

/// Reads a head; how many bytes of the body came with it.
async fn skip_head(stream: &mut TcpStream) -> usize {
    let mut head = Vec::new();
    loop {
        if let Some(at) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            return head.len() - at - 4;
        }
        assert!(stream.read_buf(&mut head).await.unwrap() > 0);
    }
}

async fn skip(stream: &mut TcpStream, mut length: usize) {
    let mut buffer = vec![0; MEBIBYTE];
    while length > 0 {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "cut {length} bytes before its end");
        length -= read;
    }
}

async fn give(stream: &mut TcpStream) {
    let piece = vec![b'x'; MEBIBYTE];
    for _ in 0..LENGTH / MEBIBYTE {
        stream.write_all(&piece).await.unwrap();
    }
}

/// The most memory that a process ever had, in KiB.
fn peak_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gibibytes_pass_both_ways_in_constant_memory() {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let config = Config::to(listener.local_addr().unwrap());
    let (gateway, _home) = Gateway::start(&config).await;
    let upstream = tokio::spawn(echo_of_length(listener));

    let passed = async {
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        let head = format!("PUT /large HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        give(&mut client).await;
        let begun = skip_head(&mut client).await;
        skip(&mut client, LENGTH - begun).await;
    };
    let minutes = std::time::Duration::from_secs(120);
    tokio::time::timeout(minutes, passed).await.expect("it streams");

    soon("the upstream", upstream).await.unwrap();
    let peak = peak_of(gateway.pid());
    assert!(peak < MAX_RESIDENT_KIB, "{peak} KiB");
}

#[tokio::test]
async fn events_arrive_one_by_one() {
    let piece = |text: &str| Step::Write(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes());
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    let upstream = Upstream::always(vec![
        Step::Write(head.into()),
        Step::Wait,
        piece("data: 1\n\n"),
        Step::Wait,
        piece("data: 2\n\n"),
        Step::Wait,
        Step::Write(b"0\r\n\r\n".to_vec()),
    ])
    .await;
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&get("/events")).await;

    // Each wait below ends only if the piece passed before the next one was sent.
    assert_eq!(client.head().await.unwrap().header("content-type"), Some("text/event-stream"));
    upstream.go();
    client.until(b"data: 1\n\n").await.unwrap();
    upstream.go();
    client.until(b"data: 2\n\n").await.unwrap();
    upstream.go();
    client.until(b"0\r\n\r\n").await.unwrap();
}

#[tokio::test]
async fn a_streamed_answer_that_is_cut_is_cut_for_the_client_too() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    let upstream = Upstream::always(vec![Step::Write(head.into()), Step::Close]).await;
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let mut client = Client::connect(gateway.address).await;
    let request = get("/elsewhere");
    client.send(&request).await;
    assert!(client.try_answer_to(&request).await.is_none(), "an answer that looks whole");
}
