//! The body of a request on its way upstream.

use std::{
    fmt, mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};

use super::wire::WireState;
use crate::BoxError;

/// A stream up to this size is taken whole if it has arrived already, so that head and body leave
/// in one write.
const SMALL: u64 = 64 * 1024;

/// The body of a request: in memory, or a stream with back-pressure.
pub struct RequestBody(Kind);

enum Kind {
    /// Empty once it was given out.
    Full(Bytes),
    Stream(Stream),
    Held(Held),
}

pub(super) struct Stream {
    /// Read ahead by [`RequestBody::gather`].
    first: Option<Frame<Bytes>>,
    rest: UnsyncBoxBody<Bytes, BoxError>,
}

/// A stream that is not touched before the request's first byte was written, so that it can still
/// be taken back when a reused connection turns out to be dead.
struct Held {
    stream: Arc<Mutex<Option<Stream>>>,
    wire: Arc<WireState>,
    size: SizeHint,
}

/// What is needed to send a body again of which nothing was sent.
pub(super) enum Spare {
    Full(Bytes),
    Held(Arc<Mutex<Option<Stream>>>),
}

// === impl RequestBody ===

impl RequestBody {
    pub const fn empty() -> Self {
        Self(Kind::Full(Bytes::new()))
    }

    /// Keyed requests are sent like this.
    pub const fn full(bytes: Bytes) -> Self {
        Self(Kind::Full(bytes))
    }

    /// Read piece by piece, no faster than the upstream takes it.
    pub fn stream<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        let rest = body.map_err(Into::into).boxed_unsync();
        Self(Kind::Stream(Stream { first: None, rest }))
    }

    pub(super) fn is_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(_) => false,
            Kind::Stream(_) | Kind::Held(_) => true,
        }
    }

    /// Takes a small stream whole if all of it is here already. Never waits.
    pub(super) fn gather(&mut self, cx: &mut Context<'_>) -> Result<(), BoxError> {
        let Kind::Stream(stream) = &mut self.0 else { return Ok(()) };
        if stream.rest.size_hint().exact().is_none_or(|size| size > SMALL) {
            return Ok(());
        }
        let Poll::Ready(Some(frame)) = Pin::new(&mut stream.rest).poll_frame(cx) else {
            return Ok(());
        };
        match frame?.into_data() {
            Ok(bytes) if stream.rest.is_end_stream() => self.0 = Kind::Full(bytes),
            Ok(bytes) => stream.first = Some(Frame::data(bytes)),
            Err(other) => stream.first = Some(other),
        }
        Ok(())
    }

    /// Gives the body for one try on the connection of `wire`, and what allows another one.
    pub(super) fn retryable(self, wire: &Arc<WireState>) -> (Self, Spare) {
        match self.0 {
            Kind::Full(bytes) => (Self::full(bytes.clone()), Spare::Full(bytes)),
            Kind::Stream(stream) => {
                let size = stream.size_hint();
                let stream = Arc::new(Mutex::new(Some(stream)));
                let held = Held { stream: Arc::clone(&stream), wire: Arc::clone(wire), size };
                (Self(Kind::Held(held)), Spare::Held(stream))
            }
            Kind::Held(held) => {
                let stream = Arc::clone(&held.stream);
                let wire = Arc::clone(wire);
                (Self(Kind::Held(Held { wire, ..held })), Spare::Held(stream))
            }
        }
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(mem::take(bytes))))),
            Kind::Stream(stream) => stream.poll_frame(cx),
            Kind::Held(held) => {
                ready!(held.wire.poll_written(cx));
                match &mut *lock(&held.stream) {
                    Some(stream) => stream.poll_frame(cx),
                    None => Poll::Ready(Some(Err("the body was taken back".into()))),
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Stream(stream) => stream.is_end_stream(),
            Kind::Held(held) => lock(&held.stream).as_ref().is_none_or(Stream::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Kind::Stream(stream) => stream.size_hint(),
            Kind::Held(held) => held.size,
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "RequestBody(<{} bytes>)", bytes.len()),
            Kind::Stream(_) | Kind::Held(_) => f.write_str("RequestBody(<stream>)"),
        }
    }
}

// === impl Spare ===

impl Spare {
    /// The body once more. Only for the one who knows that not one byte was written.
    pub(super) fn into_body(self) -> Option<RequestBody> {
        match self {
            Self::Full(bytes) => Some(RequestBody::full(bytes)),
            Self::Held(stream) => {
                let stream = lock(&stream).take()?;
                Some(RequestBody(Kind::Stream(stream)))
            }
        }
    }
}

// === impl Stream ===

impl Stream {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.first.take() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.size_hint();
        let first = self.first.as_ref().and_then(Frame::data_ref).map_or(0, Bytes::len);
        let first = u64::try_from(first).unwrap_or(u64::MAX);
        let mut whole = SizeHint::new();
        whole.set_lower(rest.lower().saturating_add(first));
        if let Some(upper) = rest.upper() {
            whole.set_upper(upper.saturating_add(first));
        }
        whole
    }
}

fn lock(stream: &Mutex<Option<Stream>>) -> MutexGuard<'_, Option<Stream>> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
