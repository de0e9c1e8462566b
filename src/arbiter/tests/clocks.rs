//! A wall clock that is stepped while answers are kept.

use super::*;

const DAY_AND_MORE: Duration = Duration::from_hours(25);

/// A wall clock that is stepped back by 25 hours, and one that is stepped forward.
fn stepped() -> [Timestamp; 2] {
    let behind = START.as_millis() - DAY_AND_MORE.as_secs() * 1000;
    [Timestamp::from_millis(behind), START.after(DAY_AND_MORE)]
}

// R32
#[tokio::test(start_paused = true)]
async fn a_step_of_the_wall_clock_neither_ends_a_retention_nor_prolongs_it() {
    for wall in stepped() {
        let (clock, hands) = Clock::by_hand(START);
        let world = World::at(clock, 100);
        let retention = world.policy.retention.completed;
        hands.step_wall(wall);
        assert_eq!(answer_of(&world.request("a").await), 1);

        hands.advance(retention.saturating_sub(Duration::from_secs(1)));
        assert_eq!(answer_of(&world.request("a").await), 1, "wall clock at {wall}");

        hands.advance(Duration::from_secs(1));
        assert_eq!(answer_of(&world.request("a").await), 2, "wall clock at {wall}");
    }
}

/// Of a record that was found in the ledger the age is known to the ledger alone.
// R32
#[tokio::test(start_paused = true)]
async fn a_record_that_was_found_is_kept_as_long_as_one_that_was_stored() {
    for wall in stepped() {
        let (clock, hands) = Clock::by_hand(START);
        let world = World::at(clock, 100);
        let retention = world.policy.retention.completed;
        assert_eq!(answer_of(&world.request("a").await), 1);
        hands.step_wall(wall);
        hands.advance(retention / 2);

        let world = World { arbiter: fresh_process(&world), ..world };
        assert_eq!(answer_of(&world.request("a").await), 1);
        assert!(world.arbiter.cached_bytes() > 0);
        hands.advance((retention / 2).saturating_sub(Duration::from_secs(1)));
        assert_eq!(answer_of(&world.request("a").await), 1, "wall clock at {wall}");

        hands.advance(Duration::from_secs(1));
        assert_eq!(answer_of(&world.request("a").await), 2, "wall clock at {wall}");
    }
}
