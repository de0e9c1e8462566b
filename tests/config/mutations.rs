//! Whatever stands in the file, it is read or explained; nothing panics and nothing hangs.

use std::collections::BTreeMap;

use oncegate::config;
use proptest::prelude::*;

const EXAMPLE: &str = include_str!("../../config/payments.yaml");

/// Scraps of YAML that change what is around them.
const SCRAPS: [&str; 24] = [
    "{", "}", "[", "]", ":", ": ", "- ", "\"", "'", "\n", "\n\n  ", "\t", "#", "&a ", "*a", "|\n",
    ">-\n", "!!str ", "---\n", "${", "$${", "\u{0}", "é🦀", "? ",
];

#[derive(Clone, Debug)]
enum Change {
    Insert(usize, &'static str),
    Delete(usize, usize),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0..EXAMPLE.chars().count();
    prop_oneof![
        (at.clone(), proptest::sample::select(&SCRAPS[..]))
            .prop_map(|(at, scrap)| Change::Insert(at, scrap)),
        (at.clone(), 1..40_usize).prop_map(|(at, length)| Change::Delete(at, length)),
        (at, 1..200_usize).prop_map(|(at, length)| Change::Repeat(at, length)),
    ]
}

fn changed(changes: &[Change]) -> String {
    let mut text: Vec<char> = EXAMPLE.chars().collect();
    for change in changes {
        match *change {
            Change::Insert(at, scrap) => {
                let at = at.min(text.len());
                text.splice(at..at, scrap.chars());
            }
            Change::Delete(at, length) => {
                let range = at.min(text.len())..(at + length).min(text.len());
                text.drain(range);
            }
            Change::Repeat(at, length) => {
                let range = at.min(text.len())..(at + length).min(text.len());
                let again = text[range.clone()].to_vec();
                text.splice(range.end..range.end, again);
            }
        }
    }
    text.into_iter().collect()
}

fn explained(bytes: &[u8]) {
    let Err(mistakes) = config::parse("x.yaml", bytes, &BTreeMap::new()) else { return };
    assert!(!mistakes.is_empty(), "refused without a word");
    let lines = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    for mistake in &mistakes {
        let (line, column) = mistake.place().unwrap();
        assert!((1..=lines + 1).contains(&line) && column >= 1, "{mistake}");
    }
    assert!(config::render_mistakes(&mistakes).lines().count() >= 3 * mistakes.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn a_changed_example_is_read_or_explained(
        changes in proptest::collection::vec(change(), 1..6),
    ) {
        explained(changed(&changes).as_bytes());
    }

    #[test]
    fn scraps_in_any_order_are_read_or_explained(
        scraps in proptest::collection::vec(proptest::sample::select(&SCRAPS[..]), 0..60),
    ) {
        explained(scraps.concat().as_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_explained(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        explained(&bytes);
    }
}

#[test]
fn brackets_without_end_are_explained() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        explained(text.as_bytes());
    }
}
