//! The socket under a connection: looks before the first byte, and remembers whether it went out.

use std::{
    fmt, io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use tokio::net::TcpStream;

use crate::ledger::Gate;

/// The socket of one connection.
///
/// Before the first byte of each request it looks whether the peer has closed the connection or
/// sent something unasked, and asks the request's [`Gate`]; either can refuse, and then nothing is
/// written.
pub(super) struct Wire {
    io: TokioIo<TcpStream>,
    state: Arc<WireState>,
}

/// What is known of the request on the wire; shared with the one who drives the connection.
#[derive(Default)]
pub(super) struct WireState {
    inner: Mutex<Inner>,
    reads: AtomicU64,
}

#[derive(Default)]
struct Inner {
    stage: Stage,
    gate: Option<Gate>,
    /// Bytes written over the life of the connection.
    written: u64,
    /// Woken with the first byte: the request's body waits for it.
    waiting: Option<Waker>,
}

/// How far the present request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    #[default]
    Resting,
    /// Not one byte of it was written.
    Armed,
    /// Not one byte of it was written, nor will be: the lease is over.
    Lapsed,
    Written,
}

// === impl Wire ===

impl Wire {
    pub(super) fn new(stream: TcpStream) -> (Self, Arc<WireState>) {
        let state = Arc::<WireState>::default();
        (Self { io: TokioIo::new(stream), state: Arc::clone(&state) }, state)
    }

    pub(super) fn state(&self) -> &Arc<WireState> {
        &self.state
    }

    /// Runs `write` once the first byte may go out, and notes what it wrote.
    fn guarded(
        &mut self,
        write: impl FnOnce(Pin<&mut TokioIo<TcpStream>>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.state.lock();
        match inner.stage {
            Stage::Resting | Stage::Written => {}
            Stage::Armed => {
                look(self.io.inner())?;
                if let Some(gate) = &inner.gate
                    && let Err(lapsed) = gate.open()
                {
                    inner.stage = Stage::Lapsed;
                    return Poll::Ready(Err(io::Error::other(lapsed)));
                }
            }
            Stage::Lapsed => return Poll::Ready(Err(io::Error::other(crate::ledger::Lapsed))),
        }
        // A write that fails or must wait has written nothing, so the stage stays as it is.
        let written = write(Pin::new(&mut self.io));
        if let Poll::Ready(Ok(count @ 1..)) = written {
            inner.written = inner.written.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            if inner.stage == Stage::Armed {
                inner.stage = Stage::Written;
                if let Some(waiting) = inner.waiting.take() {
                    waiting.wake();
                }
            }
        }
        written
    }
}

/// Looks into the socket without reading from it: an idle connection has nothing to say.
fn look(stream: &TcpStream) -> io::Result<()> {
    loop {
        return match recv(stream, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => Ok(()),
            Err(Errno::INTR) => continue,
            Err(error) => Err(error.into()),
            Ok((_, 0)) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the upstream closed the connection before the request",
            )),
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the upstream sent bytes before the request",
            )),
        };
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if read.is_ready() {
            self.state.reads.fetch_add(1, Ordering::Relaxed);
        }
        read
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.guarded(|io| io.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.guarded(|io| io.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let inner = self.state.lock();
        let Some(gate) = &inner.gate else { return };
        match inner.stage {
            Stage::Resting => {}
            Stage::Armed | Stage::Lapsed => gate.nothing_written(),
            Stage::Written => {
                // An aborted call must not go on by itself: without this the kernel would still
                // deliver what it has buffered. If it fails, the socket is gone already.
                drop(self.io.inner().set_zero_linger());
            }
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("state", &self.state).finish_non_exhaustive()
    }
}

// === impl WireState ===

impl WireState {
    /// A new request begins; `gate` is asked right before its first byte.
    pub(super) fn arm(&self, gate: Option<Gate>) {
        let mut inner = self.lock();
        inner.stage = Stage::Armed;
        inner.gate = gate;
    }

    /// The exchange has ended on both sides.
    pub(super) fn rest(&self) {
        let mut inner = self.lock();
        inner.stage = Stage::Resting;
        inner.gate = None;
        inner.waiting = None;
    }

    pub(super) fn stage(&self) -> Stage {
        self.lock().stage
    }

    pub(super) fn written(&self) -> u64 {
        self.lock().written
    }

    /// Changes with everything that is read or written.
    pub(super) fn moved(&self) -> (u64, u64) {
        (self.reads.load(Ordering::Relaxed), self.written())
    }

    /// Ready once a byte of the present request was written.
    pub(super) fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.stage == Stage::Written {
            return Poll::Ready(());
        }
        inner.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WireState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireState").field("stage", &self.stage()).finish_non_exhaustive()
    }
}
