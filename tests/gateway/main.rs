//! The real binary over real sockets; the oracle is always the upstream's execution counter.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may panic")]

mod replay;
mod support;
