//! A service that tells what it sees, a listener around it, and a client that writes raw bytes.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    net::TcpStream,
    sync::{Semaphore, mpsc, oneshot, watch},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::{
    BoxError,
    domain::Peer,
    server::{
        Canned, Drain, Drained, Server, Settings,
        connection::{Common, serve},
        wire::Transport,
    },
};

/// How long a test waits for what must come: long, since it only decides how a failure is told.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// More than a duplex stream takes.
pub(super) const LARGE: usize = 1024 * 1024;

/// What the service saw of one request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) target: String,
    /// `None` where the body broke off.
    pub(super) body: Option<Bytes>,
    pub(super) peer: Option<Peer>,
}

/// Answers every request with its own name and the request's body.
///
/// - `/gated` waits for a permit of `gate` before that.
/// - `/unread` leaves the body alone.
/// - `/large` is answered with [`LARGE`] bytes.
/// - `/broken` breaks off after some bytes.
/// - `/upgrade` switches protocols and echoes.
#[derive(Clone, Debug)]
pub(super) struct Echo {
    pub(super) name: &'static str,
    pub(super) gate: Arc<Semaphore>,
    pub(super) seen: mpsc::UnboundedSender<Seen>,
}

/// A body of these parts, of a known length unless it breaks off.
#[derive(Default)]
pub(super) struct Parts(VecDeque<Result<Bytes, BoxError>>);

/// A server under test.
pub(super) struct Running {
    pub(super) address: std::net::SocketAddr,
    pub(super) services: watch::Sender<Echo>,
    pub(super) echo: Echo,
    pub(super) seen: mpsc::UnboundedReceiver<Seen>,
    shutdown: oneshot::Sender<()>,
    serving: JoinHandle<Drained>,
}

pub(super) fn settings() -> Settings {
    let canned = |status: &str| {
        let body = format!("{{\"ours\":\"{status}\"}}");
        let length = body.len();
        Bytes::from(format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    };
    Settings {
        address: ([127, 0, 0, 1], 0).into(),
        header_timeout: Duration::from_secs(10),
        keep_alive: Duration::from_secs(75),
        write_timeout: Duration::from_secs(15),
        linger: Duration::from_secs(2),
        max_connections: 100,
        max_header_size: 16 * 1024,
        drain: Drain { delay: Duration::ZERO, timeout: SOON },
        canned: Canned {
            bad_request: canned("400 Bad Request"),
            headers_too_large: canned("431 Request Header Fields Too Large"),
            request_timeout: canned("408 Request Timeout"),
        },
    }
}

pub(super) fn echo() -> (Echo, mpsc::UnboundedReceiver<Seen>) {
    let (sender, seen) = mpsc::unbounded_channel();
    (Echo { name: "first", gate: Arc::new(Semaphore::new(0)), seen: sender }, seen)
}

pub(super) fn start(settings: &Settings) -> Running {
    let (echo, seen) = echo();
    let services = watch::Sender::new(echo.clone());
    let server = Server::bind(settings, 1).unwrap().remove(0);
    let address = server.local_address();
    let (shutdown, stopped) = oneshot::channel::<()>();
    let subscription = services.subscribe();
    let serving = tokio::spawn(async move {
        // A dropped sender is the end of the test.
        server.serve(subscription, async { drop(stopped.await) }).await
    });
    Running { address, services, echo, seen, shutdown, serving }
}

/// A connection in paused time, without a listener.
pub(super) struct Client {
    pub(super) stream: DuplexStream,
    pub(super) echo: Echo,
    pub(super) seen: mpsc::UnboundedReceiver<Seen>,
    pub(super) served: JoinHandle<()>,
    pub(super) drain: CancellationToken,
}

pub(super) fn connect() -> Client {
    let (stream, served) = duplex(64 * 1024);
    let (echo, seen) = echo();
    let (_, services) = watch::channel(echo.clone());
    let peer = Peer(([127, 0, 0, 1], 1).into());
    let common = Arc::new(Common::new(settings()));
    let drain = common.drain.clone();
    let served = tokio::spawn(serve(served, peer, services, common));
    Client { stream, echo, seen, served, drain }
}

/// Reads until `end`, inclusive.
pub(super) async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut text = Vec::new();
    let reading = async {
        while !text.ends_with(end.as_bytes()) {
            match stream.read_u8().await {
                Ok(byte) => text.push(byte),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&text)),
            }
        }
    };
    timeout(SOON, reading).await.expect("the answer comes soon");
    String::from_utf8(text).unwrap()
}

/// Reads until the other side closes.
pub(super) async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = Vec::new();
    let reading = stream.read_to_end(&mut text);
    timeout(SOON, reading).await.expect("the connection closes soon").expect("without a reset");
    String::from_utf8(text).unwrap()
}

// === impl DuplexStream ===

impl Transport for DuplexStream {
    /// Its other end sees no more than the end.
    fn reset_on_close(&self) {}
}

// === impl Running ===

impl Running {
    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Everything that is answered on one connection to these bytes. The client keeps its side
    /// open, so it is the server that closes.
    pub(super) async fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        read_to_end(&mut stream).await
    }

    pub(super) async fn next_seen(&mut self) -> Seen {
        timeout(SOON, self.seen.recv()).await.expect("a request is seen soon").unwrap()
    }

    pub(super) fn begin_shutdown(self) -> JoinHandle<Drained> {
        self.shutdown.send(()).unwrap();
        self.serving
    }

    /// Stops, and gives what was seen and not looked at yet.
    pub(super) async fn stop(mut self) -> Vec<Seen> {
        self.shutdown.send(()).unwrap();
        let drained = timeout(SOON, self.serving).await.expect("it stops soon").unwrap();
        assert_eq!(drained, Drained { finished: true, open: 0 });
        drop((self.echo, self.services));
        let mut seen = Vec::new();
        while let Some(request) = self.seen.recv().await {
            seen.push(request);
        }
        seen
    }
}

// === impl Parts ===

impl<T: Into<Bytes>> From<T> for Parts {
    fn from(whole: T) -> Self {
        Self([Ok(whole.into())].into())
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.0.pop_front().map(|part| part.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        let lengths = self.0.iter().map(|part| part.as_ref().ok().map(|bytes| bytes.len() as u64));
        lengths.sum::<Option<u64>>().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

// === impl Echo ===

impl Echo {
    async fn answer(self, mut request: Request<Incoming>) -> Response<Parts> {
        let target = request.uri().to_string();
        let peer = request.extensions().get().copied();
        let response = Response::builder();
        if target == "/upgrade" {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut stream = TokioIo::new(upgrade.await.unwrap());
                let line = read_until(&mut stream, "\n").await;
                stream.write_all(line.to_uppercase().as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            });
            let response = response.status(StatusCode::SWITCHING_PROTOCOLS);
            return response.header("upgrade", "echo").body(Parts::default()).unwrap();
        }
        if target == "/unread" {
            drop(self.seen.send(Seen { target, body: None, peer }));
            return response.body(Parts::from("unread")).unwrap();
        }
        let body = request.into_body().collect().await.ok().map(Collected::to_bytes);
        drop(self.seen.send(Seen { target: target.clone(), body: body.clone(), peer }));
        if target == "/gated" {
            self.gate.acquire().await.unwrap().forget();
        }
        if target == "/broken" {
            return response.body(Parts([Ok("some".into()), Err("broken".into())].into())).unwrap();
        }
        if target == "/large" {
            return response.body(Parts::from(vec![b'x'; LARGE])).unwrap();
        }
        let Some(body) = body else {
            return response.status(400).body(Parts::from("broken body")).unwrap();
        };
        let text = format!("{} {target} {};", self.name, String::from_utf8_lossy(&body));
        response.body(Parts::from(text)).unwrap()
    }
}

impl Service<Request<Incoming>> for Echo {
    type Response = Response<Parts>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let echo = self.clone();
        Box::pin(async move { Ok(echo.answer(request).await) })
    }
}
