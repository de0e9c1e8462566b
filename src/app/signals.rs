//! The signals that a service is steered by.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the operator, or the machine, asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// SIGTERM, SIGINT, or SIGQUIT, which nginx stops gracefully for.
    Stop,
    /// SIGHUP.
    Reload,
}

/// The signals of this process, from the moment of creation on.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Signal,
}

// === impl Signals ===

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Cancel safe: a signal that came is not lost.
    pub(super) async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.terminate.recv() => Request::Stop,
            _ = self.interrupt.recv() => Request::Stop,
            _ = self.quit.recv() => Request::Stop,
            _ = self.hang_up.recv() => Request::Reload,
        }
    }
}
