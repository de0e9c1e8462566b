//! What of a body counts in each mode.

use proptest::prelude::*;

use super::*;

const FORM: &str = "application/x-www-form-urlencoded";

fn json() -> Arc<Recipe> {
    recipe(BodyMode::Json { ignore: Vec::new() })
}

fn same_form(first: &str, second: &str) -> bool {
    let form = |body: &str| with(subject(body.to_owned()), "content-type", FORM);
    same(&recipe(BodyMode::Form), &form(first), &form(second))
}

fn multipart(boundary: &str, body: impl Into<Bytes>) -> Subject {
    let content_type = format!("multipart/form-data; boundary={boundary}");
    with(subject(body), "content-type", &content_type)
}

fn same_multipart(first: &Subject, second: &Subject) -> bool {
    same(&recipe(BodyMode::Multipart), first, second)
}

/// A body of one part for each of `parts`.
fn parts(boundary: &str, parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| format!("\r\n{part}\r\n")).collect();
    let dashes = format!("--{boundary}");
    let end = "--\r\n".to_owned();
    parts.into_iter().chain([end]).map(|after| dashes.clone() + &after).collect()
}

// R51
#[test]
fn json_is_compared_by_what_it_says() {
    let first = subject(r#"{"amount": 1.0, "to": "x"}"#);
    assert!(same(&json(), &first, &subject(r#"{"to":"x","amount":1}"#)));
    assert!(!same(&json(), &first, &subject(r#"{"to":"x","amount":2}"#)));
    assert!(!same(&recipe(BodyMode::Raw), &first, &subject(r#"{"to":"x","amount":1}"#)));
}

#[test]
fn a_body_that_its_mode_cannot_read_is_compared_raw() {
    let cases = [
        (BodyMode::Json { ignore: vec![] }, "{\"a\":1,\"a\":2}", "{ \"a\":1,\"a\":2}"),
        (BodyMode::Json { ignore: vec![] }, "{", "{ "),
        (BodyMode::Form, "a=%zz&b=1", "b=1&a=%zz"),
        (BodyMode::Multipart, "--x\r\n\r\na\r\n--x--", "--x\r\n\r\na\r\n--x--\r\n"),
    ];
    for (mode, first, second) in cases {
        let recipe = recipe(mode);
        assert!(same(&recipe, &subject(first), &subject(first)), "{first}");
        assert!(!same(&recipe, &subject(first), &subject(second)), "{first}");
    }
}

#[test]
fn an_encoded_body_is_compared_raw() {
    let gzip = |body: &'static str| with(subject(body), "content-encoding", "gzip");
    assert!(same(&json(), &gzip("[1]"), &gzip("[1]")));
    assert!(!same(&json(), &gzip("[1]"), &gzip("[ 1]")));
    assert!(!same(&json(), &gzip("[1]"), &subject("[1]")));
}

#[test]
fn a_raw_body_never_equals_a_canonical_one() {
    let digest = |mode, body| subject(body).fingerprint(&recipe(mode)).digest;
    let all = [
        digest(BodyMode::Raw, "1"),
        digest(BodyMode::Json { ignore: vec![] }, "1"),
        digest(BodyMode::Form, "1"),
        digest(BodyMode::None, "1"),
    ];
    assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])));
}

#[test]
fn without_a_body_mode_the_body_does_not_count() {
    assert!(same(&recipe(BodyMode::None), &subject("a"), &subject("b")));
}

#[test]
fn the_fields_of_a_form_may_come_in_any_order_but_the_values_of_one_may_not() {
    assert!(same_form("a=1&b=2", "b=2&a=1"));
    assert!(same_form("a=1&b=2&a=3", "a=1&a=3&b=2"));
    assert!(!same_form("a=1&a=2", "a=2&a=1"));
    assert!(!same_form("a=1&b=2", "a=2&b=1"));
}

#[test]
fn the_place_of_a_field_in_a_list_of_a_form_counts() {
    let first = "items[][id]=1&items[][count]=5&items[][id]=2";
    assert!(!same_form(first, "items[][id]=1&items[][id]=2&items[][count]=5"));
    assert!(same_form(&format!("{first}&b=1"), &format!("b=1&{first}")));
    assert!(same_form("a[x]=1&a[y]=2", "a[y]=2&a[x]=1"));
}

#[test]
fn forms_are_compared_after_decoding() {
    assert!(same_form("a%5b%5D=x+y", "a[]=x%20y"));
    assert!(same_form("a=1&&b=2&", "a=1&b=2"));
    assert!(!same_form("a=%FF", "a=%FE"));
    assert!(!same_form("a=b%26c=d", "a=b&c=d"));
    assert!(!same_form("a=%2B", "a=+"));
    assert!(!same_form("a=", "a"));
    assert!(!same_form("a=", ""));
}

#[test]
fn a_form_of_another_type_is_compared_raw() {
    let text = |body: &'static str| with(subject(body), "content-type", "text/plain");
    assert!(!same(&recipe(BodyMode::Form), &text("a=1&b=2"), &text("b=2&a=1")));
    let typed = |body: &'static str| {
        with(subject(body), "content-type", "Application/X-WWW-Form-Urlencoded; charset=utf-8")
    };
    assert!(same(&recipe(BodyMode::Form), &typed("a=1&b=2"), &typed("b=2&a=1")));
}

// R52
#[test]
fn a_boundary_preamble_or_epilogue_is_no_difference() {
    let content = "Content-Disposition: form-data; name=\"a\"\r\nX: 1\r\n\r\nvalue";
    let first = multipart("one", parts("one", &[content, "\r\n"]));
    let other = "x: 1\r\ncontent-disposition:form-data; name=\"a\" \r\n\r\nvalue";
    let body = parts("a two ", &[other, "\r\n"]).replace("--a two \r\n", "--a two  \t\r\n");
    assert!(same_multipart(&first, &multipart("\"a two \"", format!("pre\r\n{body}post"))));
    assert!(same_multipart(&first, &multipart("\"o\\ne\"", parts("one", &[content, "\r\n"]))));
}

#[test]
fn everything_in_a_part_counts() {
    let base = multipart("b", parts("b", &["A: 1\r\n\r\nx", "A: 2\r\n\r\ny"]));
    let different: [&[&str]; 8] = [
        &["A: 1\r\n\r\nx"],
        &["A: 2\r\n\r\ny", "A: 1\r\n\r\nx"],
        &["A: 1\r\n\r\nx", "A: 2\r\n\r\nz"],
        &["A: 1\r\n\r\nx", "B: 2\r\n\r\ny"],
        &["A: 1\r\n\r\nx", "A: 3\r\n\r\ny"],
        &["A: 1\r\n\r\nx", "A: 2\r\nA: 2\r\n\r\ny"],
        &["A: 1\r\n\r\nx\r\n", "A: 2\r\n\r\ny"],
        &["A: 1\r\n\r\nx", "A: 2\r\n\r\ny", "\r\n"],
    ];
    for (at, other) in different.into_iter().enumerate() {
        assert!(!same_multipart(&base, &multipart("b", parts("b", other))), "{at}");
    }
    let mixed = with(subject(base.body.clone()), "content-type", "multipart/mixed; boundary=b");
    assert!(!same_multipart(&base, &mixed));
}

#[test]
fn a_multipart_that_parsers_could_see_differently_is_compared_raw() {
    let odd = [
        "--BB\r\n\r\nx\r\n--BB--",
        "--B\r\n\r\nx\r\n--B",
        "--B\r\n\r\nx\r\n--B junk\r\n\r\ny\r\n--B--",
        "--B\n\nx\n--B--",
        "--B\r\nA: 1\r\n--B--",
        "--B\r\n--B--\r\n--B--",
        "--B\r\nA: 1\r\n 2\r\n\r\nx\r\n--B--",
        "--B\r\nA\r\n\r\nx\r\n--B--",
        "--B\r\n\r\nx\r\n--B--junk",
    ];
    for body in odd {
        let other = body.replace('B', "C");
        let [first, second] = [multipart("B", body), multipart("C", other)];
        assert!(same_multipart(&first, &first), "{body:?}");
        assert!(!same_multipart(&first, &second), "{body:?}");
    }
    let content_types = [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "text/plain; boundary=B",
        "multipart/form-data; boundary=B; boundary=B",
        "multipart/form-data; boundary=\"B",
        "multipart/form-data; boundary=B junk",
    ];
    for content_type in content_types {
        let whole = |body: &str| with(subject(body.to_owned()), "content-type", content_type);
        let [first, second] = [whole("--B\r\n\r\nx\r\n--B--"), whole("--B\r\n\r\nx\r\n--B--\r\n")];
        assert!(!same_multipart(&first, &second), "{content_type}");
    }
}

proptest! {
    // R52
    #[test]
    fn only_the_boundary_may_change_in_a_multipart(
        contents in prop::collection::vec("[a\r\n-]{0,6}", 0..4),
        others in prop::collection::vec("[a\r\n-]{0,6}", 0..4),
    ) {
        let whole = |boundary: &str, contents: &[String]| {
            let contents: Vec<String> = contents.iter().map(|part| format!("\r\n{part}")).collect();
            let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
            multipart(boundary, parts(boundary, &contents))
        };
        prop_assert!(same_multipart(&whole("ONE", &contents), &whole("TWO", &contents)));
        let equal = same_multipart(&whole("ONE", &contents), &whole("TWO", &others));
        prop_assert_eq!(equal, contents == others);
    }

    #[test]
    fn no_body_makes_a_reader_panic(
        body in r#"(--B|\r\n|--|:|a|%4|&|=|\+|;|é|\{|"|\\){0,12}"#,
        content_type in r#"multipart/(a|;| |=|"|\\|boundary=B){0,8}"#,
    ) {
        let modes = [BodyMode::Form, BodyMode::Multipart, BodyMode::Json { ignore: vec![] }];
        for mode in modes {
            subject(body.clone()).fingerprint(&recipe(mode.clone()));
            with(subject(body.clone()), "content-type", &content_type).fingerprint(&recipe(mode));
        }
    }

    #[test]
    fn a_form_differs_when_one_value_does(values in prop::collection::vec("[a-c&=%+ ]{0,3}", 1..4), other in "[a-c&=%+ ]{0,3}") {
        let encoded = |values: &[String]| {
            let pairs = values.iter().enumerate().map(|(at, value)| (format!("f{at}"), value));
            form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
        };
        let mut changed = values.clone();
        changed[0].clone_from(&other);
        prop_assert_eq!(same_form(&encoded(&values), &encoded(&changed)), values[0] == other);
    }
}
