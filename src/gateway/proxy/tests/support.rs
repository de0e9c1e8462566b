//! A scripted upstream that counts what it received, and requests to send to it.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};

use crate::{
    BoxError,
    gateway::proxy::{
        Balance, Endpoint, RequestBody, Settings, Upstream, UpstreamBody, UpstreamError,
    },
    ledger::{Gate, Lease},
};

/// A hang must fail the test.
pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), future).await.expect("the test hangs")
}

/// What an upstream has received, over all its connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Received {
    pub(super) fn count(&self) -> usize {
        self.heads.lock().unwrap().len()
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One connection, as its upstream sees it.
pub(super) struct Accepted {
    /// 1 is the first.
    pub(super) number: usize,
    pub(super) stream: TcpStream,
    received: Received,
    buffer: Vec<u8>,
}

impl Accepted {
    /// Reads the head of the next request; `None` when the gateway has closed the connection. Even
    /// a part of one counts as received.
    pub(super) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|it| it == b"\r\n\r\n") {
                let rest = self.buffer.split_off(end + 4);
                let head = std::mem::replace(&mut self.buffer, rest);
                let head = String::from_utf8(head).unwrap();
                self.received.heads.lock().unwrap().push(head.clone());
                return Some(head);
            }
            if !self.fill().await {
                if !self.buffer.is_empty() {
                    self.received.heads.lock().unwrap().push("(part)".to_owned());
                }
                return None;
            }
        }
    }

    /// Reads the next request with its body of known length.
    pub(super) async fn request(&mut self) -> Option<(String, Vec<u8>)> {
        let head = self.head().await?;
        let length = head
            .to_ascii_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ").map(str::parse::<usize>))
            .map_or(0, Result::unwrap);
        while self.buffer.len() < length {
            if !self.fill().await {
                return None;
            }
        }
        let rest = self.buffer.split_off(length);
        Some((head, std::mem::replace(&mut self.buffer, rest)))
    }

    /// Reads until what was received since the last request ends with `end`.
    pub(super) async fn until(&mut self, end: &[u8]) -> Vec<u8> {
        while !self.buffer.ends_with(end) {
            assert!(self.fill().await, "the gateway closed the connection");
        }
        std::mem::take(&mut self.buffer)
    }

    pub(super) async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    pub(super) async fn ok(&mut self, body: &str) {
        self.write(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
            .await;
    }

    pub(super) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    /// How the connection ended for the upstream: `Ok` for a regular close.
    pub(super) async fn ended(&mut self) -> std::io::Result<()> {
        let mut ignored = [0; 4096];
        while self.stream.read(&mut ignored).await? > 0 {}
        Ok(())
    }

    async fn fill(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..))
    }
}

/// Listens on a free port and gives each connection to `script`.
pub(super) async fn upstream<F>(
    script: impl Fn(Accepted) -> F + Send + 'static,
) -> (SocketAddr, Received)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = Received::default();
    let seen = received.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let number = seen.connections.fetch_add(1, Ordering::SeqCst) + 1;
            let received = seen.clone();
            tokio::spawn(script(Accepted { number, stream, received, buffer: Vec::new() }));
        }
    });
    (address, received)
}

/// Answers every request with its number on this connection.
pub(super) async fn echo(mut connection: Accepted) {
    let mut number = 0;
    while connection.request().await.is_some() {
        number += 1;
        connection.ok(&number.to_string()).await;
    }
}

/// An address that refuses connections.
pub(super) async fn refusing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

pub(super) fn settings(addresses: &[SocketAddr]) -> Settings {
    let endpoint = |it: &SocketAddr| Endpoint { host: it.ip().to_string(), port: it.port() };
    Settings {
        name: "test".into(),
        endpoints: addresses.iter().map(endpoint).collect(),
        balance: Balance::LeastRequests,
        connect_timeout: Duration::from_secs(5),
        // Longer than `within` waits, so that a lost wake-up is no mere timeout.
        request_timeout: Duration::from_mins(1),
        idle_timeout: Duration::from_secs(10),
        stream_timeout: Duration::from_secs(10),
        max_answer_head: 16 * 1024,
        max_idle: 16,
    }
}

pub(super) fn to(address: SocketAddr) -> Upstream {
    Upstream::new(settings(&[address]))
}

pub(super) fn get(path: &str) -> Request<RequestBody> {
    Request::get(path).header("host", "api.example.com").body(RequestBody::empty()).unwrap()
}

/// A keyed request and its gate.
pub(super) fn keyed(path: &str, body: &'static str) -> (Request<RequestBody>, Gate) {
    keyed_with(path, body, Gate::new(None))
}

pub(super) fn keyed_with(
    path: &str,
    body: &'static str,
    gate: Gate,
) -> (Request<RequestBody>, Gate) {
    let body = RequestBody::full(Bytes::from_static(body.as_bytes()));
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("host", "api.example.com")
        .extension(gate.clone())
        .body(body)
        .unwrap();
    (request, gate)
}

pub(super) async fn text(
    answer: Result<Response<UpstreamBody>, UpstreamError>,
) -> Result<String, UpstreamError> {
    let bytes = answer?.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// A lease that is over.
#[derive(Debug)]
pub(super) struct Over;

impl Lease for Over {
    fn is_running(&self) -> bool {
        false
    }
}

/// A body that is sent piece by piece.
pub(super) struct Pieces {
    pub(super) pieces: mpsc::Receiver<Result<Bytes, BoxError>>,
    pub(super) size: SizeHint,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = ready!(self.pieces.poll_recv(cx));
        if let (Some(Ok(piece)), Some(size)) = (&piece, self.size.exact()) {
            self.size = SizeHint::with_exact(size - u64::try_from(piece.len()).unwrap());
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}

/// A streamed POST, and where its pieces go in.
pub(super) fn streamed(
    size: SizeHint,
) -> (Request<RequestBody>, mpsc::Sender<Result<Bytes, BoxError>>) {
    let (sender, pieces) = mpsc::channel(1);
    let body = RequestBody::stream(Pieces { pieces, size });
    let request = Request::post("/upload").header("host", "api.example.com").body(body).unwrap();
    (request, sender)
}
