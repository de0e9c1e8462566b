//! The order of the queue for a lock, and whose nodes stand in it.

use proptest::prelude::*;

use crate::{
    domain::AttemptId,
    ledger::zookeeper::paths::{Layout, Sequence, find_own, is_contended, predecessor},
};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn sequence(name: &str) -> Sequence {
    Sequence::of(name).expect("a lock")
}

// Z30, Z31
#[test]
fn the_sequence_alone_decides_who_comes_first() {
    let all = names(&["_c_zzz-lock-0000000001", "_c_aaa-lock-0000000002", "record"]);
    assert_eq!(predecessor(&all, sequence(&all[1])), Some("_c_zzz-lock-0000000001"));
    assert_eq!(predecessor(&all, sequence(&all[0])), None);
}

// Z23
#[test]
fn the_order_goes_on_where_the_servers_counter_wraps() {
    let all = names(&["_c_a-lock-2147483647", "_c_b-lock--2147483648", "_c_c-lock--2147483647"]);
    assert_eq!(predecessor(&all, sequence(&all[0])), None);
    assert_eq!(predecessor(&all, sequence(&all[1])), Some("_c_a-lock-2147483647"));
    assert_eq!(predecessor(&all, sequence(&all[2])), Some("_c_b-lock--2147483648"));
}

#[test]
fn locks_of_curator_and_kazoo_stand_in_the_queue_and_other_nodes_do_not() {
    for lock in [
        "_c_0d6f0f1e-4a5f-4d07-9f13-1c8f6f3b1a11-lock-0000000003",
        "lock-0000000003",
        "9bbf3b0b8f6246f6a1b2c3d4e5f60718__lock__0000000003",
    ] {
        assert!(is_contended(&names(&[lock])), "{lock}");
        let own = sequence("_c_us-lock-0000000004");
        assert_eq!(predecessor(&names(&[lock]), own), Some(lock));
    }
    for other in ["record", "lock-", "lock-12", "lock-00000000ab", "block", "sweeper-0000000001"] {
        assert!(!is_contended(&names(&[other])), "{other}");
    }
}

#[test]
fn an_attempt_finds_its_own_node_by_its_whole_name() {
    let (one, two) = (AttemptId::random(), AttemptId::random());
    let all = names(&[&format!("_c_{one}-lock-0000000000"), "record"]);
    assert_eq!(find_own(&all, one), Some(&*all[0]));
    assert_eq!(find_own(&all, two), None);
}

#[test]
fn the_nodes_of_gateways_are_no_locks() {
    let layout = Layout::new("/dedup/");
    assert!(layout.is_of_gateways("/dedup/gateways/gateway-1-100000"));
    assert!(!layout.is_of_gateways("/dedup/ab/abcd/_c_x-lock-0000000000"));
}

proptest! {
    #[test]
    fn everyone_but_the_first_waits_for_the_one_before(start: i32, length in 2_usize..20) {
        let numbers = (0..length).map(|n| start.wrapping_add(i32::try_from(n).unwrap()));
        let mut all: Vec<String> = numbers.map(|n| format!("_c_x-lock-{n:010}")).collect();
        let ordered = all.clone();
        all.reverse();
        for (index, name) in ordered.iter().enumerate() {
            let before = index.checked_sub(1).map(|index| ordered[index].as_str());
            prop_assert_eq!(predecessor(&all, sequence(name)), before);
        }
    }
}
