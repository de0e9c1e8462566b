//! The contract of [`Ledger`](super::Ledger) as a list of tests that every implementation passes.
//!
//! An implementation gives a [`Harness`] and one line, `ledger_suite!(name, ItsHarness)`.

pub(in crate::ledger) mod cancel;
pub(in crate::ledger) mod durable;
pub(in crate::ledger) mod exclusive;
pub(in crate::ledger) mod operator;
pub(in crate::ledger) mod replay;
pub(in crate::ledger) mod requests;
pub(in crate::ledger) mod unknown;

use std::{future::Future, sync::Arc, time::Duration};

use super::Ledger;

/// Starts, moves and kills a ledger.
pub(in crate::ledger) trait Harness: Sized + Send + Sync + 'static {
    /// A new ledger without a key in it.
    fn start() -> impl Future<Output = Self> + Send;

    fn ledger(&self) -> Arc<dyn Ledger>;

    /// Lets the ledger's time pass.
    fn advance(&self, duration: Duration) -> impl Future<Output = ()> + Send;

    /// Whether anything outlives the process.
    fn is_durable(&self) -> bool;

    /// Ends the process as `kill -9` does, and starts another on what is left.
    fn crash(self) -> impl Future<Output = Self> + Send;

    /// Closes the ledger in good order, and starts another.
    fn restart(self) -> impl Future<Output = Self> + Send;
}

/// The list. `$test` are the arguments of `tokio::test`.
macro_rules! ledger_suite {
    ($name:ident, $harness:ty $(, $($test:tt)+)?) => {
        mod $name {
            use super::*;
            use crate::ledger::suite::{
                cancel, durable, exclusive, ledger_cases, replay, unknown,
            };

            ledger_cases!($harness, ($($($test)+)?), exclusive: [
                at_most_one_of_a_hundred_begins_owns_the_key,
                keys_are_independent,
                tokens_grow_from_attempt_to_attempt,
                another_request_is_refused_while_the_first_is_held,
                a_waiter_is_given_the_answer_when_the_holder_commits,
                a_waiter_owns_the_key_when_the_holder_releases,
                a_waiter_is_told_when_the_holder_abandons,
                a_waiter_is_refused_after_its_wait,
                only_one_of_many_waiters_owns_a_released_key,
            ]);
            ledger_cases!($harness, ($($($test)+)?), durable: [
                an_open_intent_is_unknown_after_a_crash,
                an_answer_outlives_a_crash,
                a_release_outlives_a_crash,
                an_abandoned_key_stays_unknown_after_a_crash,
                tokens_grow_over_crashes,
                closing_waits_for_the_ends_that_were_asked_for,
                a_hold_is_lost_when_the_ledger_is_closed,
            ]);
            ledger_cases!($harness, ($($($test)+)?), replay: [
                an_answer_is_replayed_byte_for_byte,
                a_tombstone_is_replayed_as_one,
                an_answer_is_replayed_until_its_retention_ends,
                another_request_is_refused_by_a_completed_key,
                a_key_begins_anew_after_its_retention,
            ]);
            ledger_cases!($harness, ($($($test)+)?), unknown: [
                a_hold_dropped_before_its_gate_frees_the_key,
                a_hold_dropped_after_its_gate_leaves_the_key_unknown,
                an_unknown_key_is_granted_after_its_retention_only,
                an_unknown_key_without_retention_stays_unknown,
                another_request_is_refused_by_an_unknown_key,
                a_takeover_is_a_further_attempt_with_a_higher_token,
                takeovers_end_at_their_bound,
                a_release_after_a_takeover_leaves_the_key_unknown,
                a_takeover_that_commits_completes_the_key,
            ]);
            ledger_cases!($harness, ($($($test)+)?), cancel: [
                a_begin_that_was_dropped_leaves_no_hold,
                a_takeover_that_was_dropped_leaves_the_key_unknown,
                a_waiter_that_was_dropped_leaves_nothing,
                an_end_takes_effect_although_nobody_watches,
            ]);
        }
    };
}
pub(in crate::ledger) use ledger_suite;

/// The same for the operator's side, over an [`OperatorHarness`](operator::OperatorHarness).
macro_rules! operator_suite {
    ($name:ident, $harness:ty $(, $($test:tt)+)?) => {
        mod $name {
            use super::*;
            use crate::ledger::suite::{ledger_cases, operator};

            ledger_cases!($harness, ($($($test)+)?), operator: [
                a_resolved_key_gives_the_operators_answer,
                a_resolved_key_is_kept_from_the_decision_on,
                a_released_key_begins_a_new_life,
                a_held_key_is_not_decided_about,
                a_takeover_under_way_is_not_decided_about,
                a_completed_key_is_not_decided_about,
                an_absent_key_is_not_decided_about,
                a_key_that_is_unknown_is_not_forced,
                of_decisions_that_meet_one_is_made,
                a_retry_that_meets_a_resolve_never_runs,
                a_takeover_that_meets_a_decision_excludes_it,
                a_decision_that_was_dropped_is_made_or_not,
                decisions_outlive_a_crash,
                a_key_whose_holder_crashed_can_be_released,
                a_key_is_shown_as_it_is,
                every_key_is_listed_once_over_all_pages,
                what_is_over_or_released_is_not_listed,
            ]);
        }
    };
}
pub(in crate::ledger) use operator_suite;

/// A test for each case of one room of the suite.
macro_rules! ledger_cases {
    ($harness:ty, $arguments:tt, $room:ident: [$($case:ident),* $(,)?]) => {
        $(
            #[tokio::test $arguments]
            async fn $case() {
                let case = $room::$case::<$harness>();
                let limit = std::time::Duration::from_hours(100 * 24);
                tokio::time::timeout(limit, case).await.expect("the case ends");
            }
        )*
    };
}
pub(in crate::ledger) use ledger_cases;
