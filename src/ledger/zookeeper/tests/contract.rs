//! The contract of every ledger, over a real ensemble.

use super::harness::EnsembleHarness;
use crate::ledger::suite::{ledger_suite, operator_suite};

ledger_suite!(ensemble, EnsembleHarness, flavor = "multi_thread", worker_threads = 2);
operator_suite!(operator, EnsembleHarness, flavor = "multi_thread", worker_threads = 2);
