//! Real gateways on a real three-server ensemble; the oracle is the upstream's execution counter.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may panic")]

#[path = "../certificates.rs"]
mod certificates;
#[expect(dead_code, unused_imports, reason = "the tests of one gateway use more of this folder")]
#[path = "../gateway/support/mod.rs"]
mod shared;
mod support;

mod chaos;
mod crash;
mod doctor;
mod duplicates;
mod lost_replies;
mod observed;
mod partition;
mod peers;
mod queried;
mod records;
mod secrets;
mod security;
mod servers;
mod session;
mod start;
mod tls;
mod tooling;
