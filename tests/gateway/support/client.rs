//! A client that knows exactly which bytes went out and which came back.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::soon;

/// A request as bytes; it speaks for the caller `alice` unless told otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    target: String,
    lines: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case, lines in order.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// Interim answers before it.
    pub(crate) interim: Vec<u16>,
}

/// Header lines by name.
type Lines<'a> = Vec<(&'a str, &'a [u8])>;

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

pub(crate) fn get(target: &str) -> Request {
    Request::new("GET", target)
}

/// A keyed charge of the caller `alice`.
pub(crate) fn post(key: &str) -> Request {
    Request::new("POST", "/v1/charges").header("Idempotency-Key", key).body("amount=5")
}

/// The answer to a request on a connection of its own.
pub(crate) async fn ask(address: SocketAddr, request: &Request) -> Answer {
    let mut client = Client::connect(address).await;
    client.send(request).await;
    client.answer_to(request).await
}

// === impl Request ===

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        let line = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        Self {
            method: method.into(),
            target: target.into(),
            lines: vec![line("Host", "api.test"), line("X-Api-Key", "alice-secret")],
            body: Vec::new(),
        }
    }

    /// One more line.
    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.lines.push((name.into(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.lines.retain(|(line, _)| !line.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn caller(self, api_key: &str) -> Self {
        self.without("X-Api-Key").header("X-Api-Key", api_key)
    }

    pub(crate) fn to(self, target: &str) -> Self {
        Self { target: target.into(), ..self }
    }

    pub(crate) fn method(self, method: &str) -> Self {
        Self { method: method.into(), ..self }
    }

    pub(crate) fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn head(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.lines {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        if !self.body.is_empty() {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

// === impl Client ===

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = soon("a connection", TcpStream::connect(address)).await.unwrap();
        Self::over(stream)
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, request: &Request) {
        self.send_bytes(&request.bytes()).await;
    }

    /// Whether all of it could be handed over.
    pub(crate) async fn try_send(&mut self, request: &Request) -> bool {
        soon("room to write", self.stream.write_all(&request.bytes())).await.is_ok()
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        soon("room to write", self.stream.write_all(bytes)).await.unwrap();
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        self.answer_to(&get("/")).await
    }

    /// The next answer, which must be whole.
    pub(crate) async fn answer_to(&mut self, request: &Request) -> Answer {
        self.try_answer_to(request).await.expect("a whole answer")
    }

    /// The next answer; `None` if the connection ended before it was whole.
    pub(crate) async fn try_answer_to(&mut self, request: &Request) -> Option<Answer> {
        let mut interim = Vec::new();
        let mut answer = loop {
            let answer = self.head().await?;
            if answer.status >= 200 || answer.status == 101 {
                break answer;
            }
            interim.push(answer.status);
        };
        answer.interim = interim;
        let has_no_body = request.method == "HEAD" || matches!(answer.status, 101 | 204 | 304);
        answer.body = if has_no_body {
            Vec::new()
        } else if answer.header("transfer-encoding").is_some() {
            self.chunks().await?
        } else if let Some(length) = answer.header("content-length") {
            self.exactly(length.parse().unwrap()).await?
        } else {
            self.rest().await
        };
        Some(answer)
    }

    /// The next head.
    pub(crate) async fn head(&mut self) -> Option<Answer> {
        let head = self.until(b"\r\n\r\n").await?;
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let status = lines.next().unwrap();
        let status = std::str::from_utf8(status).unwrap().split(' ').nth(1).unwrap();
        let headers = lines.filter(|line| !line.is_empty()).map(|line| {
            let colon = line.iter().position(|byte| *byte == b':').expect("a colon");
            let name = String::from_utf8(line[..colon].to_ascii_lowercase()).unwrap();
            (name, line[colon + 1..].trim_ascii().to_vec())
        });
        Some(Answer {
            status: status.parse().unwrap(),
            headers: headers.collect(),
            body: Vec::new(),
            interim: Vec::new(),
        })
    }

    /// All that comes until the other side closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }

    /// Whether the other side closes without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.rest().await.is_empty()
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.read.len() < length {
            if !self.more().await {
                return None;
            }
        }
        let rest = self.read.split_off(length);
        Some(std::mem::replace(&mut self.read, rest))
    }

    async fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n").await?;
            let line = std::str::from_utf8(&line).unwrap().trim();
            let length = usize::from_str_radix(line, 16).unwrap();
            let chunk = self.exactly(length + 2).await?;
            if length == 0 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }

    pub(crate) async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end) {
                return self.exactly(at + end.len()).await;
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// A reset is an end like any other.
    async fn more(&mut self) -> bool {
        self.read.reserve(64 * 1024);
        let read = soon("bytes of an answer", self.stream.read_buf(&mut self.read)).await;
        read.is_ok_and(|length| length > 0)
    }
}

// === impl Answer ===

impl Answer {
    /// The value of the only line of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.lines(name);
        assert!(lines.len() < 2, "{name} once: {self:?}");
        lines.first().map(|value| std::str::from_utf8(value).unwrap())
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<&[u8]> {
        let lines = self.headers.iter().filter(|(line, _)| line == name);
        lines.map(|(_, value)| &**value).collect()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The code of a problem of the gateway.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}")).to_owned()
    }

    /// What every later answer must repeat: all but the lines about this one message.
    pub(crate) fn lasting(&self) -> (u16, Lines<'_>, &[u8]) {
        const OF_ONE_MESSAGE: [&str; 6] = [
            "date",
            "server",
            "connection",
            "x-request-id",
            "idempotent-replayed",
            "transfer-encoding",
        ];
        let mut lines: Vec<_> = self
            .headers
            .iter()
            .filter(|(name, _)| !OF_ONE_MESSAGE.contains(&&**name) && name != "content-length")
            .map(|(name, value)| (&**name, &**value))
            .collect();
        // The order among lines of one name is kept, that of names is not promised.
        lines.sort_by_key(|(name, _)| *name);
        (self.status, lines, &self.body)
    }
}
