//! Which requests are the same request.

mod bodies;
mod stored;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::{BodyMode, Recipe, Subject};
use crate::domain::Secret;

fn recipe(body: BodyMode) -> Arc<Recipe> {
    Arc::new(Recipe { version: Recipe::VERSION, body, headers: Vec::new(), authority: true })
}

fn subject(body: impl Into<Bytes>) -> Subject {
    Subject {
        method: Method::POST,
        authority: "api.example.com".into(),
        path: "/v1/charges".into(),
        query: None,
        headers: HeaderMap::new(),
        body: body.into(),
        secret: None,
    }
}

fn with(mut subject: Subject, name: &'static str, value: &str) -> Subject {
    let value = HeaderValue::from_str(value).unwrap();
    subject.headers.append(HeaderName::from_static(name), value);
    subject
}

/// Whether the second request is a retry of the first.
fn same(recipe: &Arc<Recipe>, first: &Subject, second: &Subject) -> bool {
    second.matches(&first.fingerprint(recipe))
}

// R54, R57, R58
#[test]
fn every_part_of_a_request_counts() {
    let raw = recipe(BodyMode::Raw);
    let base = subject("a");
    let different = [
        Subject { method: Method::PATCH, ..base.clone() },
        Subject { authority: "api.example.org".into(), ..base.clone() },
        Subject { path: "/v1/charges/".into(), ..base.clone() },
        Subject { query: Some("".into()), ..base.clone() },
        Subject { query: Some("a".into()), ..base.clone() },
        Subject { path: "/v1/chargesa".into(), body: Bytes::new(), ..base.clone() },
        Subject { body: "b".into(), ..base.clone() },
        Subject { body: Bytes::new(), ..base.clone() },
        Subject { secret: Some(Arc::new(Secret::new(*b"s"))), ..base.clone() },
    ];
    assert!(same(&raw, &base, &base.clone()));
    for (at, other) in different.iter().enumerate() {
        assert!(!same(&raw, &base, other), "{at}");
        assert!(different[..at].iter().all(|another| !same(&raw, another, other)), "{at}");
    }
}

#[test]
fn the_authority_counts_only_where_the_recipe_says_so() {
    let single_host = Arc::new(Recipe { authority: false, ..(*recipe(BodyMode::Raw)).clone() });
    let other = Subject { authority: "other.example.com".into(), ..subject("a") };
    assert!(same(&single_host, &subject("a"), &other));
    let unnamed = Subject { authority: "".into(), ..subject("a") };
    let with_authority = unnamed.fingerprint(&recipe(BodyMode::Raw));
    assert_ne!(with_authority.digest, unnamed.fingerprint(&single_host).digest);
}

#[test]
fn all_lines_of_the_named_headers_count_and_no_others() {
    let named = HeaderName::from_static("x-account");
    let recipe = Arc::new(Recipe { headers: vec![named], ..(*recipe(BodyMode::Raw)).clone() });
    let one = with(subject(""), "x-account", "a");
    let two = with(one.clone(), "x-account", "b");
    let swapped = with(with(subject(""), "x-account", "b"), "x-account", "a");
    let joined = with(subject(""), "x-account", "a, b");
    let all = [subject(""), one.clone(), two, swapped, joined, with(subject(""), "x-account", "")];
    for (at, other) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|another| !same(&recipe, another, other)), "{at}");
    }
    assert!(same(&recipe, &one, &with(one.clone(), "x-other", "c")));
}

#[test]
fn debug_shows_nothing_that_only_the_caller_may_see() {
    let subject = with(Subject { query: Some("card=4242".into()), ..subject("4242") }, "a", "4242");
    assert!(!format!("{subject:?}").contains("4242"));
}
