//! A scripted upstream: it counts what it received, then does as it was told.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Semaphore, watch},
    task::JoinHandle,
};

use super::soon;

/// A request that arrived whole: an execution.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case, lines in order.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// What the upstream does after it received a request, in order. It then reads the next one.
pub(crate) type Script = Vec<Step>;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write(Vec<u8>),
    /// Until [`Upstream::go`].
    Wait,
    /// Until the other side ends the connection, which [`Upstream::aborted`] waits for.
    UntilAborted,
    /// Ends the connection.
    Close,
    /// Ends it, and tells [`Upstream::closed`] once the other side's kernel knows.
    CloseAndTell,
    /// Ends it with a reset.
    Reset,
}

type Behaviour = Box<dyn Fn(&Received) -> Script + Send + Sync>;

struct Shared {
    received: Mutex<Vec<Received>>,
    count: watch::Sender<usize>,
    connections: watch::Sender<usize>,
    closed: watch::Sender<usize>,
    aborted: watch::Sender<usize>,
    behaviour: Mutex<Behaviour>,
    gate: Semaphore,
}

/// Ends with its test.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// An address where nobody listens, and nobody else can.
pub(crate) struct Refusing {
    pub(crate) address: SocketAddr,
    socket: TcpSocket,
}

/// An answer of this status line with these further lines and body, framed by its length.
pub(crate) fn answer(status: &str, lines: &str, body: impl AsRef<[u8]>) -> Script {
    let body = body.as_ref();
    let length = match status.get(..3) {
        Some("204" | "304") => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let mut bytes = format!("HTTP/1.1 {status}\r\n{lines}{length}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    vec![Step::Write(bytes)]
}

/// The same in chunks, without a length.
pub(crate) fn chunked(status: &str, lines: &str, chunks: &[&str]) -> Script {
    let mut text = format!("HTTP/1.1 {status}\r\n{lines}Transfer-Encoding: chunked\r\n\r\n");
    for chunk in chunks {
        write!(text, "{:x}\r\n{chunk}\r\n", chunk.len()).unwrap();
    }
    text.push_str("0\r\n\r\n");
    vec![Step::Write(text.into_bytes())]
}

// === impl Received ===

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(line, _)| line == name);
        found.map(|(_, value)| std::str::from_utf8(value).unwrap())
    }

    pub(crate) fn key(&self) -> &str {
        self.header("idempotency-key").unwrap_or_default()
    }
}

// === impl Upstream ===

impl Upstream {
    /// Answers each request with a new receipt: `201` and its number.
    pub(crate) fn start() -> Self {
        Refusing::new().listen()
    }

    /// Does as `behaviour` says.
    pub(crate) fn scripted(
        behaviour: impl Fn(&Received) -> Script + Send + Sync + 'static,
    ) -> Self {
        let upstream = Self::start();
        upstream.now(behaviour);
        upstream
    }

    /// Gives this answer to everything.
    pub(crate) fn always(script: Script) -> Self {
        Self::scripted(move |_| script.clone())
    }

    /// Holds every answer until [`go`](Self::go), then gives a receipt.
    pub(crate) fn holding() -> Self {
        Self::scripted(|received| {
            let mut script = vec![Step::Wait];
            script.extend(receipt(received));
            script
        })
    }

    fn on(listener: TcpListener) -> Self {
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            count: watch::Sender::new(0),
            connections: watch::Sender::new(0),
            closed: watch::Sender::new(0),
            aborted: watch::Sender::new(0),
            behaviour: Mutex::new(Box::new(receipt)),
            gate: Semaphore::new(0),
        });
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    /// Another behaviour, for requests that arrive from now on.
    pub(crate) fn now(&self, behaviour: impl Fn(&Received) -> Script + Send + Sync + 'static) {
        *self.shared.behaviour.lock().unwrap() = Box::new(behaviour);
    }

    /// Lets one waiting answer go on.
    pub(crate) fn go(&self) {
        self.shared.gate.add_permits(1);
    }

    /// How many requests were received: the executions.
    pub(crate) fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.shared.connections.borrow()
    }

    /// How many executions this key had.
    pub(crate) fn executions(&self, key: &str) -> usize {
        self.all().iter().filter(|received| received.key() == key).count()
    }

    pub(crate) fn all(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> Received {
        self.all().pop().expect("the upstream received a request")
    }

    /// Until this many connections in all have been closed, and the other side could know.
    pub(crate) async fn closed(&self, count: usize) {
        let mut counts = self.shared.closed.subscribe();
        let closed = counts.wait_for(|now| *now >= count);
        drop(soon("the end of a connection", closed).await.unwrap());
    }

    /// Until this many calls in all were aborted by the other side.
    pub(crate) async fn aborted(&self, count: usize) {
        let mut counts = self.shared.aborted.subscribe();
        let aborted = counts.wait_for(|now| *now >= count);
        drop(soon("the abort of a call", aborted).await.unwrap());
    }

    /// Until this many requests in all have been received.
    pub(crate) async fn received(&self, count: usize) {
        let mut counts = self.shared.count.subscribe();
        let arrived = counts.wait_for(|now| *now >= count);
        drop(soon("a request at the upstream", arrived).await.unwrap());
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The default: a charge that tells its number, so that a second execution shows.
fn receipt(received: &Received) -> Script {
    let body = format!("receipt of {} for {}", received.target, received.key());
    answer("201 Created", "Content-Type: text/plain\r\nLocation: /v1/charges/1\r\n", body)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        shared.connections.send_modify(|count| *count += 1);
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut inbox = Inbox { stream, read: Vec::new() };
    while let Some(received) = inbox.receive().await {
        let script = (shared.behaviour.lock().unwrap())(&received);
        shared.received.lock().unwrap().push(received);
        shared.count.send_modify(|count| *count += 1);
        for step in script {
            match step {
                Step::Write(bytes) => {
                    if inbox.stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Wait => shared.gate.acquire().await.unwrap().forget(),
                Step::UntilAborted => {
                    while inbox.more().await.is_some() {}
                    return shared.aborted.send_modify(|count| *count += 1);
                }
                Step::Close => return,
                Step::CloseAndTell => {
                    inbox.stream.shutdown().await.ok();
                    until_seen(&inbox.stream).await;
                    return shared.closed.send_modify(|count| *count += 1);
                }
                Step::Reset => {
                    let socket = socket2::SockRef::from(&inbox.stream);
                    return socket.set_linger(Some(Duration::ZERO)).unwrap();
                }
            }
        }
    }
}

/// Until the other side's kernel knows that `stream` was shut down: until then it could still send,
/// and nobody could tell that it should not.
async fn until_seen(stream: &TcpStream) {
    const WAITS_FOR_ACKNOWLEDGEMENT: &str = "04";
    let port = |address: std::io::Result<SocketAddr>| address.map_or(0, |address| address.port());
    let (ours, theirs) = (port(stream.local_addr()), port(stream.peer_addr()));
    let (ours, theirs) = (format!(":{ours:04X}"), format!(":{theirs:04X}"));
    let is_pending = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&ours))
            && fields.next().is_some_and(|peer| peer.ends_with(&theirs))
            && fields.next() == Some(WAITS_FOR_ACKNOWLEDGEMENT)
    };
    while std::fs::read_to_string("/proc/net/tcp").unwrap().lines().any(is_pending) {
        tokio::task::yield_now().await;
    }
}

/// What came over a connection and was not taken yet.
struct Inbox {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Inbox {
    /// The next whole request; `None` when the connection ended before.
    async fn receive(&mut self) -> Option<Received> {
        let head = self.until(b"\r\n\r\n").await?;
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let request_line = String::from_utf8(lines.next()?.to_vec()).unwrap();
        let headers = lines.filter(|line| !line.is_empty()).map(|line| {
            let colon = line.iter().position(|byte| *byte == b':').unwrap();
            let name = String::from_utf8(line[..colon].to_ascii_lowercase()).unwrap();
            (name, line[colon + 1..].trim_ascii().to_vec())
        });
        let mut words = request_line.split(' ').map(ToOwned::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let headers = headers.collect();
        let mut received = Received { method, target, headers, body: Vec::new() };
        if received.header("transfer-encoding").is_some() {
            loop {
                let line = self.until(b"\r\n").await?;
                let length = std::str::from_utf8(&line).unwrap().trim();
                let length = usize::from_str_radix(length, 16).unwrap();
                let chunk = self.exactly(length + 2).await?;
                if length == 0 {
                    break;
                }
                received.body.extend_from_slice(&chunk[..length]);
            }
        } else if let Some(length) = received.header("content-length") {
            let length = length.parse().unwrap();
            received.body = self.exactly(length).await?;
        }
        Some(received)
    }

    async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end) {
                return self.exactly(at + end.len()).await;
            }
            self.more().await?;
        }
    }

    async fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.read.len() < length {
            self.more().await?;
        }
        let rest = self.read.split_off(length);
        Some(std::mem::replace(&mut self.read, rest))
    }

    async fn more(&mut self) -> Option<()> {
        let read = self.stream.read_buf(&mut self.read).await;
        read.is_ok_and(|length| length > 0).then_some(())
    }
}

// === impl Refusing ===

impl Refusing {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self { address: socket.local_addr().unwrap(), socket }
    }

    /// From now on it answers.
    pub(crate) fn listen(self) -> Upstream {
        Upstream::on(self.socket.listen(1024).unwrap())
    }
}
