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

/// What `start` gives; `None` when the gateway is told to stop before that.
pub(super) async fn unless_stopped<T>(
    signals: &mut Signals,
    start: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        started = start => Some(started),
        () = told_to_stop(signals) => None,
    }
}

/// Resolves at the next request to stop.
pub(super) async fn told_to_stop(signals: &mut Signals) {
    while signals.next().await != Request::Stop {}
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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn a_gateway_that_is_told_to_stop_does_not_wait_for_its_start() {
        let mut signals = Signals::new().unwrap();
        assert_eq!(unless_stopped(&mut signals, async { 1 }).await, Some(1));
        for signal in [Signal::TERM, Signal::INT] {
            kill_process(getpid(), signal).unwrap();
            assert_eq!(unless_stopped(&mut signals, pending::<()>()).await, None);
        }
    }
}
