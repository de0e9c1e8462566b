//! A scripted upstream: it counts what it received, then does as it was told.

use std::{
    collections::VecDeque,
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
    /// Ends the connection.
    Close,
    /// Ends it with a reset.
    Reset,
}

type Behaviour = Box<dyn Fn(&Received) -> Script + Send + Sync>;

struct Shared {
    received: Mutex<Vec<Received>>,
    count: watch::Sender<usize>,
    connections: watch::Sender<usize>,
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
        text.push_str(&format!("{:x}\r\n{chunk}\r\n", chunk.len()));
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
    pub(crate) async fn start() -> Self {
        Refusing::new().listen()
    }

    /// Does as `behaviour` says.
    pub(crate) async fn scripted(
        behaviour: impl Fn(&Received) -> Script + Send + Sync + 'static,
    ) -> Self {
        let upstream = Self::start().await;
        upstream.now(behaviour);
        upstream
    }

    /// Gives this answer to everything.
    pub(crate) async fn always(script: Script) -> Self {
        Self::scripted(move |_| script.clone()).await
    }

    /// Holds every answer until [`go`](Self::go), then gives a receipt.
    pub(crate) async fn holding() -> Self {
        Self::scripted(|received| {
            let mut script = vec![Step::Wait];
            script.extend(receipt(received));
            script
        })
        .await
    }

    fn on(listener: TcpListener) -> Self {
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            count: watch::Sender::new(0),
            connections: watch::Sender::new(0),
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

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut read = VecDeque::new();
    while let Some(received) = receive(&mut stream, &mut read).await {
        let script = (shared.behaviour.lock().unwrap())(&received);
        shared.received.lock().unwrap().push(received);
        shared.count.send_modify(|count| *count += 1);
        for step in script {
            match step {
                Step::Write(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Wait => shared.gate.acquire().await.unwrap().forget(),
                Step::Close => return,
                Step::Reset => {
                    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
                    return;
                }
            }
        }
    }
}

/// The next whole request; `None` when the connection ended before.
async fn receive(stream: &mut TcpStream, read: &mut VecDeque<u8>) -> Option<Received> {
    let mut buffer = [0; 16 * 1024];
    let end = loop {
        let bytes = read.make_contiguous();
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        read.extend(&buffer[..length]);
    };
    let head: Vec<u8> = read.drain(..end).collect();
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let request_line = String::from_utf8(lines.next()?.to_vec()).unwrap();
    let headers = lines.filter(|line| !line.is_empty()).map(|line| {
        let colon = line.iter().position(|byte| *byte == b':').unwrap();
        let name = String::from_utf8(line[..colon].to_ascii_lowercase()).unwrap();
        (name, line[colon + 1..].trim_ascii().to_vec())
    });
    let mut words = request_line.split(' ').map(ToOwned::to_owned);
    let mut received = Received {
        method: words.next()?,
        target: words.next()?,
        headers: headers.collect(),
        body: Vec::new(),
    };
    if received.header("transfer-encoding").is_some() {
        loop {
            let line = take(stream, read, Until::Line).await?;
            let length = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16);
            let length = length.unwrap();
            let chunk = take(stream, read, Until::Length(length + 2)).await?;
            if length == 0 {
                break;
            }
            received.body.extend_from_slice(&chunk[..length]);
        }
    } else if let Some(length) = received.header("content-length") {
        let length = length.parse().unwrap();
        received.body = take(stream, read, Until::Length(length)).await?;
    }
    Some(received)
}

enum Until {
    Line,
    Length(usize),
}

async fn take(stream: &mut TcpStream, read: &mut VecDeque<u8>, until: Until) -> Option<Vec<u8>> {
    let mut buffer = [0; 64 * 1024];
    loop {
        let end = match until {
            Until::Line => read.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
            Until::Length(length) => (read.len() >= length).then_some(length),
        };
        if let Some(end) = end {
            return Some(read.drain(..end).collect());
        }
        let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        read.extend(&buffer[..length]);
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
