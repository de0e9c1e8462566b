//! The real binary over real sockets; the oracle is always the upstream's execution counter.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod chaos;
mod cli;
mod concurrency;
mod crash;
mod drain;
mod fingerprint;
mod forward;
mod keys;
mod ledger;
mod limits;
mod observe;
mod reload;
mod replay;
mod streaming;
mod support;
mod tracing;
mod upstream;
