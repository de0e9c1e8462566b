//! The bytes of a connection, with hyper's own answers replaced by ours.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{
    Canned,
    progress::{Phase, Progress},
};
use crate::telemetry::Outcome;

/// A connection's stream as hyper sees it.
///
/// hyper answers what it cannot parse with a status line and no body. Such an answer is known by
/// its time: no request is being served. It is swallowed, and ours goes out in its place.
///
/// Dropped in the middle of an answer it resets the connection: where the end of the connection is
/// the end of the body, as HTTP/1.0 has it, part of an answer would pass for all of it.
#[derive(Debug)]
pub(super) struct Wire<T: Transport> {
    stream: T,
    progress: Progress,
    canned: Canned,
    /// Which answer of ours was given; the last one of a connection.
    own: Option<Own>,
    /// What is left to write of it.
    unsent: Bytes,
    /// Whether the client has closed its side.
    read_closed: bool,
}

/// What carries a connection's bytes.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Makes the coming close one that nobody takes for an orderly end.
    fn reset_on_close(&self);
}

/// An answer that no service gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    BadRequest,
    HeadersTooLarge,
    RequestTimeout,
}

// === impl Wire ===

impl<T: Transport> Wire<T> {
    pub(super) fn new(stream: T, progress: Progress, canned: Canned) -> Self {
        Self { stream, progress, canned, own: None, unsent: Bytes::new(), read_closed: false }
    }

    /// The answer that was given in place of a service's, if any.
    pub(super) fn own(&self) -> Option<Own> {
        self.own
    }

    /// Whether the client has closed its side, so that nothing can be unread.
    pub(super) fn is_read_closed(&self) -> bool {
        self.read_closed
    }

    /// Gives an answer, to be written by the next flush or shutdown. Only the first one counts.
    pub(super) fn answer(&mut self, own: Own) {
        if self.own.is_none() {
            self.own = Some(own);
            self.unsent = match own {
                Own::BadRequest => self.canned.bad_request.clone(),
                Own::HeadersTooLarge => self.canned.headers_too_large.clone(),
                Own::RequestTimeout => self.canned.request_timeout.clone(),
            };
        }
    }

    /// Takes hyper's own answer, by the first bytes of its head, for the sign that one is due.
    fn replace(&mut self, head: &[u8]) {
        let status = head.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
        self.answer(match status {
            // A request line that is too long is a head that is too long.
            Some(b"431" | b"414") => Own::HeadersTooLarge,
            _ => Own::BadRequest,
        });
    }

    fn is_service_writing(&self) -> bool {
        let phase = self.progress.phase();
        self.own.is_none() && matches!(phase, Phase::Serving | Phase::HandedOver)
    }

    fn poll_write_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.unsent.has_remaining() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.unsent))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Transport> AsyncRead for Wire<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.progress.bytes_came();
        } else {
            self.read_closed = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Transport> AsyncWrite for Wire<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_service_writing() {
            let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
            self.progress.wrote(written.is_ready());
            return written;
        }
        self.replace(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_service_writing() {
            let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
            self.progress.wrote(written.is_ready());
            return written;
        }
        self.replace(slices.first().map_or(&[], |slice| slice));
        Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it has written all it had.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_unsent(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.progress.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_unsent(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<T: Transport> Drop for Wire<T> {
    fn drop(&mut self) {
        if self.progress.phase() == Phase::Serving {
            self.stream.reset_on_close();
        }
    }
}

// === impl TcpStream ===

impl Transport for TcpStream {
    fn reset_on_close(&self) {
        // It fails for connections that are gone already.
        self.set_zero_linger().ok();
    }
}

// === impl Own ===

impl Own {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::BadRequest => Outcome::BadRequest,
            Self::HeadersTooLarge => Outcome::HeadersTooLarge,
            Self::RequestTimeout => Outcome::RequestTimeout,
        }
    }
}
