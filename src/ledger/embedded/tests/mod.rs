//! The contract over each kind of embedded ledger, and what is the embedded ledger's own.

mod clocks;
mod crash;
mod decisions;
mod disk;
mod examined;
mod faults;
mod harness;
mod leftovers;
mod moments;
mod opening;
mod pages;
mod retention;

use self::harness::{DelayedHarness, DiskHarness, FileHarness, MemoryHarness};
use crate::ledger::suite::{ledger_suite, operator_suite};

ledger_suite!(in_memory, MemoryHarness, start_paused = true);
ledger_suite!(delayed, DelayedHarness, start_paused = true);
ledger_suite!(in_a_file, FileHarness);
ledger_suite!(on_a_disk_that_loses_what_was_not_synced, DiskHarness);

operator_suite!(operated_in_memory, MemoryHarness, start_paused = true);
operator_suite!(operated_delayed, DelayedHarness, start_paused = true);
operator_suite!(operated_in_a_file, FileHarness);
operator_suite!(operated_on_a_disk_that_loses_what_was_not_synced, DiskHarness);
