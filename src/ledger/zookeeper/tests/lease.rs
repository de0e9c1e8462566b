//! A lease ends before the servers can end the session, whatever is paused, late or cut off.

use std::time::Duration;

use proptest::prelude::*;

use crate::{
    domain::{BootInstant, Clock, Timestamp},
    ledger::zookeeper::lease::{Beats, Terms},
};

const TERMS: Terms = Terms { timeout: Duration::from_secs(12), tick: Duration::from_secs(2) };

fn zero() -> BootInstant {
    Clock::by_hand(Timestamp::from_millis(0)).0.boot()
}

fn at(millis: u64) -> BootInstant {
    zero().after(Duration::from_millis(millis))
}

fn left(beats: &Beats, now: u64) -> Duration {
    beats.lease_until().since(at(now))
}

#[test]
fn a_new_session_is_leased_from_before_it_existed() {
    assert_eq!(left(&Beats::new(TERMS, at(0)), 0), Duration::from_secs(10));
}

#[test]
fn a_write_alone_keeps_nothing() {
    let mut beats = Beats::new(TERMS, at(0));
    beats.acknowledged(at(5_000), at(5_001));
    assert_eq!(left(&beats, 0), Duration::from_secs(10));
}

#[test]
fn a_write_counts_once_a_later_one_shows_that_the_follower_could_tell_the_leader() {
    let mut beats = Beats::new(TERMS, at(0));
    beats.acknowledged(at(1_000), at(1_010));
    // Too early: the follower's ping may not have been due in between.
    beats.acknowledged(at(2_509), at(2_520));
    assert_eq!(left(&beats, 0), Duration::from_secs(10));
    beats.acknowledged(at(2_620), at(2_630));
    assert_eq!(left(&beats, 0), Duration::from_secs(11));
}

// 3.8: a gateway is paused 8 s, sends one heartbeat, then its follower is cut off.
#[test]
fn after_a_pause_the_lease_starts_short() {
    let mut beats = Beats::new(TERMS, at(0));
    for beat in [0, 1_600, 3_200] {
        beats.acknowledged(at(beat), at(beat + 5));
    }
    beats.acknowledged(at(11_200), at(11_205));
    // The newest write that is known to have been delivered is the one before the pause.
    assert_eq!(beats.lease_until(), at(3_200 + 10_000));
}

#[test]
fn in_steady_state_most_of_the_lease_is_left() {
    let mut beats = Beats::new(TERMS, at(0));
    let mut now = 0;
    for _ in 0..50 {
        beats.acknowledged(at(now), at(now + 3));
        now += 3 + 1_500;
    }
    let last = now - 1_503;
    assert!(left(&beats, last) >= Duration::from_millis(8_400), "{:?}", left(&beats, last));
    let latency = Duration::from_millis(6);
    assert!(left(&beats, now) + latency >= TERMS.shortest_lease());
}

proptest! {
    /// A model of the servers: the leader learns of a session from a follower's answer to its
    /// ping, every half tick, as long as the two are connected, and ends it a timeout after.
    #[test]
    fn a_lease_ends_before_the_servers_end_the_session(
        gaps in prop::collection::vec((1_u64..6_000, 0_u64..900), 1..40),
        cut_after in 0_usize..40,
        phase in 0_u64..1_000,
    ) {
        let mut beats = Beats::new(TERMS, at(0));
        // What the leader last heard of the session; the creation told it.
        let mut touched = 0_u64;
        let mut now = 0_u64;
        let mut seen = Vec::new();
        for (number, (gap, latency)) in gaps.into_iter().enumerate() {
            now += gap;
            let sent = now;
            // From here on the follower is cut off, and forwards nothing.
            if number >= cut_after {
                break;
            }
            now += latency;
            seen.push(sent);
            // Each ping in between that was answered told of the writes seen before it.
            let ping = (now.saturating_sub(phase) / 1_000) * 1_000 + phase;
            if let Some(told) = seen.iter().filter(|sent| **sent <= ping && ping <= now).max() {
                touched = touched.max(*told);
            }
            beats.acknowledged(at(sent), at(now));
        }
        let ended = at(touched).after(TERMS.timeout);
        prop_assert!(beats.lease_until() <= ended);
    }
}
