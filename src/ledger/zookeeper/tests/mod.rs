//! The ledger over a real ensemble.
//!
//! `ONCEGATE_TEST_ZK` names its servers; `tests/run.sh` starts one and sets it.

mod contract;
mod harness;
