//! The ledger over a real ensemble, and what can be decided without one.
//!
//! `ONCEGATE_TEST_ZK` names the servers; `tests/run.sh` starts some and sets it.

mod contract;
mod faults;
mod harness;
mod lease;
mod queue;
mod retention;
mod values;
