//! A connection to an upstream, driven by the one who uses it.

use std::{
    error::Error as _,
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    thread::{self, ThreadId},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{Builder, Connection, SendRequest},
    },
};
use tokio::{
    net::TcpStream,
    task::unconstrained,
    time::{Instant, Sleep, sleep_until},
};

use super::{
    body::RequestBody,
    error::UpstreamError,
    wire::{Stage, Wire, WireState},
};
use crate::{BoxError, ledger::Gate};

/// A connection and what is needed to use it once more.
pub(super) struct Link {
    sender: SendRequest<RequestBody>,
    connection: Connection<Wire, RequestBody>,
    wire: Arc<WireState>,
    deadline: Deadline,
    /// The thread whose runtime watches the socket.
    home: ThreadId,
    /// How the connection ended, once it has: it must not be polled again.
    end: Option<hyper::Result<()>>,
}

/// Why an exchange gave no answer.
pub(super) enum Failure {
    /// Not one byte was written, and there was no other reason to stop: try elsewhere.
    Unwritten(BoxError),
    Final(UpstreamError),
}

/// What the wait for an answer came to.
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one")]
enum Waited {
    Answered(Result<Response<Incoming>, TrySendError<Request<RequestBody>>>),
    Ended,
    TimedOut,
}

/// A timer that is moved without touching the runtime's timers, as long as it moves forward.
struct Deadline {
    at: Instant,
    /// Fires at `at` or earlier.
    sleep: Pin<Box<Sleep>>,
}

// === impl Link ===

impl Link {
    pub(super) async fn open(
        stream: TcpStream,
        max_answer_head: usize,
    ) -> hyper::Result<Box<Self>> {
        let (wire, state) = Wire::new(stream);
        let (sender, connection) =
            Builder::new().max_header_size(max_answer_head).handshake(wire).await?;
        let deadline = Deadline::new(Instant::now());
        let home = thread::current().id();
        Ok(Box::new(Self { sender, connection, wire: state, deadline, home, end: None }))
    }

    pub(super) fn home(&self) -> ThreadId {
        self.home
    }

    pub(super) fn wire(&self) -> &Arc<WireState> {
        &self.wire
    }

    /// Sends `request` and gives the head of its answer.
    ///
    /// The answer is due at `deadline`; with `renewed`, that long after the last byte of the
    /// request. After a failure, or when the future is dropped, this connection must be dropped:
    /// its [`Wire`] then takes back the gate, or aborts the call.
    pub(super) async fn exchange(
        &mut self,
        request: Request<RequestBody>,
        gate: Option<Gate>,
        deadline: Instant,
        renewed: Option<Duration>,
    ) -> Result<Response<Incoming>, Failure> {
        self.wire.arm(gate);
        self.deadline.set(deadline);
        let mut written = self.wire.written();
        // Only `drive` can make it ready, so it needs no waker; and without one the runtime must
        // not make it wait for its turn.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let waited = poll_fn(|cx| {
            drive(&mut self.connection, &mut self.end, cx);
            let mut unwoken = Context::from_waker(Waker::noop());
            if let Poll::Ready(answered) = answer.as_mut().poll(&mut unwoken) {
                return Poll::Ready(Waited::Answered(answered));
            }
            // A connection that was closed while idle ends without taking the request.
            if self.end.is_some() {
                return Poll::Ready(Waited::Ended);
            }
            if let Some(renewed) = renewed {
                let so_far = self.wire.written();
                if so_far > written {
                    written = so_far;
                    self.deadline.set(Instant::now() + renewed);
                }
            }
            self.deadline.poll(cx).map(|()| Waited::TimedOut)
        })
        .await;
        match waited {
            Waited::Answered(Ok(response)) if self.wire.stage() == Stage::Written => Ok(response),
            // It was under way before the request, so it answers something else.
            Waited::Answered(Ok(_)) => Err(self.interrupted("an answer came unasked".into())),
            Waited::Answered(Err(error)) => Err(self.failure(error.into_error())),
            Waited::Ended => match self.end.take() {
                Some(Err(error)) => Err(self.failure(error)),
                Some(Ok(())) | None => Err(self.interrupted("the connection ended".into())),
            },
            Waited::TimedOut if self.wire.stage() == Stage::Written => {
                Err(Failure::Final(UpstreamError::TimedOut))
            }
            Waited::TimedOut => Err(Failure::Final(UpstreamError::NotSent(
                "the upstream took nothing before the time was over".into(),
            ))),
        }
    }

    fn failure(&self, error: hyper::Error) -> Failure {
        if error.is_user() {
            return Failure::Final(UpstreamError::RequestBody(error.into()));
        }
        self.interrupted(error.into())
    }

    /// The wire alone knows whether anything was sent, not the kind of the error.
    fn interrupted(&self, error: BoxError) -> Failure {
        match self.wire.stage() {
            Stage::Resting | Stage::Armed => Failure::Unwritten(error),
            Stage::Lapsed => Failure::Final(UpstreamError::Lapsed),
            Stage::Written => Failure::Final(UpstreamError::Interrupted(error)),
        }
    }

    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.connection, &mut self.end, cx);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether both sides of the exchange have ended, and another one may follow.
    pub(super) fn is_reusable(&self) -> bool {
        self.end.is_none() && self.sender.is_ready()
    }

    /// The upstream sent more than the answer it had announced.
    pub(super) fn surplus(&mut self) -> Option<UpstreamError> {
        // hyper has no predicate for its "unexpected message"; it is the error that has no source
        // and is none of the others.
        let is_surplus = matches!(&self.end, Some(Err(error)) if error.source().is_none()
            && !error.is_incomplete_message()
            && !error.is_canceled()
            && !error.is_closed()
            && !error.is_user());
        match self.end.take_if(|_| is_surplus)? {
            Ok(()) => None,
            Err(error) => {
                self.end = Some(Ok(()));
                Some(UpstreamError::Interrupted(error.into()))
            }
        }
    }

    /// The exchange has ended well: closing the connection now aborts nothing.
    pub(super) fn rest(&self) {
        self.wire.rest();
    }

    pub(super) fn set_deadline(&mut self, at: Instant) {
        self.deadline.set(at);
    }

    pub(super) fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.deadline.poll(cx)
    }

    /// The socket, and what was read from it already.
    pub(super) fn into_wire(self) -> (Wire, Bytes) {
        let parts = self.connection.into_parts();
        (parts.io, parts.read_buf)
    }
}

/// Lets the connection write and read; notes its end.
fn drive(
    connection: &mut Connection<Wire, RequestBody>,
    end: &mut Option<hyper::Result<()>>,
    cx: &mut Context<'_>,
) {
    if end.is_none()
        && let Poll::Ready(result) = Pin::new(connection).poll(cx)
    {
        *end = Some(result);
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("wire", &self.wire)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

// === impl Deadline ===

impl Deadline {
    fn new(at: Instant) -> Self {
        Self { at, sleep: Box::pin(sleep_until(at)) }
    }

    fn set(&mut self, at: Instant) {
        self.at = at;
        if self.sleep.deadline() > at {
            self.sleep.as_mut().reset(at);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.at {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(self.at);
        }
        Poll::Pending
    }
}
