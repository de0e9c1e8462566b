//! Fingerprints that an earlier configuration or version made.

use super::*;
use crate::domain::{Fingerprint, KeyId};

// R56
#[test]
fn a_retry_is_compared_by_the_recipe_of_the_first_request() {
    let stored =
        subject(r#"{"a":1,"b":2}"#).fingerprint(&recipe(BodyMode::Json { ignore: vec![] }));
    assert!(subject(r#"{"b":2,"a":1}"#).matches(&stored));
    let stored = subject("a").fingerprint(&recipe(BodyMode::Raw));
    assert!(subject("a").matches(&stored) && !subject("b").matches(&stored));
}

#[test]
fn a_fingerprint_at_hand_tells_a_retry_as_hashing_anew_does() {
    let recipes = [recipe(BodyMode::Raw), recipe(BodyMode::Json { ignore: vec![] })];
    let bodies = ["[1]", "[ 1]", "[2]"];
    for (now, then) in recipes.iter().flat_map(|now| recipes.iter().map(move |then| (now, then))) {
        for (first, retry) in bodies.iter().flat_map(|a| bodies.iter().map(move |b| (*a, *b))) {
            let (stored, retry) = (subject(first).fingerprint(then), subject(retry));
            let at_hand = retry.fingerprint(now);
            assert_eq!(at_hand.is_retry_of(&stored, &retry), retry.matches(&stored));
        }
    }
}

// R56
#[test]
fn a_recipe_of_an_unknown_version_matches_nothing() {
    let newer = Recipe { version: Recipe::VERSION + 1, ..(*recipe(BodyMode::Raw)).clone() };
    let stored = subject("a").fingerprint(&Arc::new(newer));
    assert!(!subject("a").matches(&stored));
    assert!(!stored.is_retry_of(&stored, &subject("a")));
}

#[test]
fn the_digest_of_a_request_stays_the_same_from_release_to_release() {
    let named = vec![HeaderName::from_static("x-account")];
    let recipe = Recipe { headers: named, ..(*recipe(BodyMode::Raw)).clone() };
    let subject = with(Subject { query: Some("q".into()), ..subject("body") }, "x-account", "a");
    let digest = subject.fingerprint(&Arc::new(recipe)).digest;
    let hex = KeyId::from_bytes(digest).to_string();
    // Computed apart from this code, from the encoding that `fingerprint` writes.
    assert_eq!(hex, "fe492c92c9a27ac3bb05abcc900c5dfd93a6f9b33ac29739c2ee1331048af09a");
}

#[test]
fn a_stored_fingerprint_comes_back_as_it_was() {
    let modes = [
        BodyMode::Raw,
        BodyMode::Json { ignore: vec!["/meta/sent_at".to_owned()] },
        BodyMode::Form,
        BodyMode::Multipart,
        BodyMode::None,
    ];
    for mode in modes {
        let headers = vec![HeaderName::from_static("x-account")];
        let recipe = Recipe { headers, ..(*recipe(mode)).clone() };
        let fingerprint = subject("a").fingerprint(&Arc::new(recipe));
        let stored = postcard::to_stdvec(&fingerprint).unwrap();
        assert_eq!(postcard::from_bytes::<Fingerprint>(&stored).unwrap(), fingerprint);
    }
}

#[test]
fn the_stored_form_of_a_recipe_never_changes() {
    let stored = |body| {
        let headers = vec![HeaderName::from_static("x-a")];
        let recipe = Recipe { version: 1, body, headers, authority: true };
        let bytes = postcard::to_stdvec(&recipe).unwrap();
        (bytes[0], bytes[1..bytes.len() - 6].to_vec(), bytes[bytes.len() - 6..].to_vec())
    };
    let end = vec![1, 3, b'x', b'-', b'a', 1];
    let json = BodyMode::Json { ignore: vec!["/a".to_owned()] };
    assert_eq!(stored(BodyMode::Raw), (1, vec![0], end.clone()));
    assert_eq!(stored(json), (1, vec![1, 1, 2, b'/', b'a'], end.clone()));
    assert_eq!(stored(BodyMode::Form), (1, vec![2], end.clone()));
    assert_eq!(stored(BodyMode::Multipart), (1, vec![3], end.clone()));
    assert_eq!(stored(BodyMode::None), (1, vec![4], end));
}
