//! What counts as the same JSON.

use proptest::prelude::*;
use serde_json::Value;

use super::{canonical, is_json_pointer};

fn text(body: &str) -> Option<String> {
    without(body, &[])
}

fn without(body: &str, ignore: &[&str]) -> Option<String> {
    let ignore: Vec<String> = ignore.iter().map(|&pointer| pointer.to_owned()).collect();
    let canonical = canonical(body.as_bytes(), &ignore)?;
    Some(String::from_utf8(canonical).unwrap())
}

fn assert_text(body: &str, expected: &str) {
    assert_eq!(text(body).as_deref(), Some(expected), "{body}");
}

#[test]
fn the_examples_of_the_standard_come_out_as_it_says() {
    // RFC 8785 section 3.2.2 and 3.2.4; its 333333333.33333329 stays as written, see `number`.
    assert_text(
        r#"{
          "numbers": [1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"#,
        "{\"literals\":[null,true,false],\"numbers\":[1e+30,4.5,0.002,1e-27],\
         \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
    );
    // Section 3.2.3: by UTF-16 code units, where a surrogate comes before U+FB33.
    assert_text(
        r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
        "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}",
    );
}

#[test]
fn white_space_and_the_order_of_members_do_not_count() {
    assert_text(
        " { \"b\" :\t[ 1 , { } ,\r\n[ ] ] , \"a\" : \"x y\" } ",
        r#"{"a":"x y","b":[1,{},[]]}"#,
    );
    assert_text(r#"{"b":{"d":1,"c":2},"a":3}"#, r#"{"a":3,"b":{"c":2,"d":1}}"#);
}

#[test]
fn the_order_of_elements_counts_and_null_is_not_absent() {
    assert_ne!(text("[1,2]"), text("[2,1]"));
    assert_ne!(text(r#"{"a":null}"#), text("{}"));
    assert_ne!(text(r#"{"a":"1"}"#), text(r#"{"a":1}"#));
}

#[test]
fn one_number_is_one_text() {
    for same in ["1", "1.0", "1e0", "10E-1", "0.1e+1", "1.000000000000000000000000"] {
        assert_text(same, "1");
    }
    for zero in ["0", "-0", "0.0", "-0e5", "0e99999999999999999999"] {
        assert_text(zero, "0");
    }
    for tenth in ["0.1", "0.10", "1e-1", "10e-2"] {
        assert_text(tenth, "0.1");
    }
    assert_text("1234567890123456", "1234567890123456");
    assert_text("-12.50", "-12.5");
    assert_text("100000000000000000000", "100000000000000000000");
    assert_text("1000000000000000000000", "1e+21");
}

#[test]
fn numbers_that_a_double_would_round_stay_apart() {
    assert_text("9007199254740992", "9007199254740992");
    assert_text("9007199254740993", "9007199254740993e0");
    assert_text("9007199254740993.0", "9007199254740993e0");
    assert_text("-90071992547409930100", "-900719925474099301e2");
    assert_ne!(text("0.1"), text("0.1000000000000000055511151231257827"));
    assert_ne!(text("1e400"), text("1e401"));
    assert_eq!(text("1e400"), text("10e399"));
    assert_ne!(text("1e-400"), text("0"));
    assert_ne!(text("1e99999999999999999999"), text("2e99999999999999999999"));
}

#[test]
fn what_is_not_json_is_not_read() {
    let wrong = [
        "",
        " ",
        "nul",
        "[1,]",
        "[,1]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "[1 2]",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "1e",
        "NaN",
        "1 2",
        "\"\n\"",
        "\"\\x\"",
        "\"a",
        "\"\\ud800\"",
        "\u{feff}1",
        "{,}",
        "[",
        "{",
        "]",
        "'a'",
        "\"\\",
    ];
    for body in wrong {
        assert_eq!(text(body), None, "{body:?}");
    }
    assert_eq!(canonical(b"\"\xff\"", &[]), None);
}

#[test]
fn a_member_named_twice_is_not_read() {
    assert_eq!(text(r#"{"a":1,"a":1}"#), None);
    assert_eq!(text(r#"{"a":1,"b":2,"\u0061":1}"#), None);
    assert_eq!(without(r#"{"a":1,"a":2}"#, &["/a"]), None);
    assert_text(r#"[{"a":1},{"a":1}]"#, r#"[{"a":1},{"a":1}]"#);
}

#[test]
fn depth_is_bounded() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(text(&nested(128)).is_some());
    assert!(text(&nested(129)).is_none());
    assert!(text(&"[".repeat(1_000_000)).is_none());
    assert!(text(&"{\"a\":".repeat(1_000_000)).is_none());
}

#[test]
fn a_member_that_libraries_use_for_numbers_is_a_member() {
    let body = r#"{"$serde_json::private::Number":"1"}"#;
    assert_text(body, body);
}

#[test]
fn ignored_places_do_not_count() {
    let body = r#"{"meta":{"sent_at":1,"by":"x"},"list":[{"id":1},{"id":2}],"a/b":3,"~":4}"#;
    let cases: [(&[&str], &str); 7] = [
        (&["/meta/sent_at"], r#"{"a/b":3,"list":[{"id":1},{"id":2}],"meta":{"by":"x"},"~":4}"#),
        (&["/meta", "/list/1/id"], r#"{"a/b":3,"list":[{"id":1},{}],"~":4}"#),
        (&["/list/0", "/list/1", "/meta"], r#"{"a/b":3,"list":[],"~":4}"#),
        (&["/a~1b", "/~0", "/meta", "/list/0"], r#"{"list":[{"id":2}]}"#),
        (&["/list", "/meta", "/a~1b", "/~0"], "{}"),
        (&["/list", "/meta/by", "/meta/sent_at"], r#"{"a/b":3,"meta":{},"~":4}"#),
        (&[""], ""),
    ];
    for (ignore, expected) in cases {
        assert_eq!(without(body, ignore).as_deref(), Some(expected), "{ignore:?}");
    }
}

#[test]
fn a_pointer_that_leads_nowhere_ignores_nothing() {
    let body = r#"{"a":[1,2],"b":3}"#;
    for pointer in ["/c", "/a/2", "/a/-", "/a/01", "/a/+1", "/b/c", "/A", "/a/", "a", "/"] {
        assert_eq!(without(body, &[pointer]).as_deref(), Some(body), "{pointer}");
    }
    assert_eq!(without(r#"{"":1,"a":2}"#, &["/"]).as_deref(), Some(r#"{"a":2}"#));
}

#[test]
fn a_pointer_is_told_from_other_text() {
    assert!(["", "/", "/a/0", "/a~0b~1c"].into_iter().all(is_json_pointer));
    assert!(!["a", "/~", "/~2", "#/a"].into_iter().any(is_json_pointer));
}

/// Any JSON value, as `serde_json` holds it.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,3}", inner, 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Writes `value` with its members reversed and white space wherever it may stand.
fn rearranged(value: &Value, text: &mut String) {
    match value {
        Value::Array(elements) => {
            text.push_str("\n[ ");
            for (at, element) in elements.iter().enumerate() {
                text.push_str(if at > 0 { " ,\t" } else { "" });
                rearranged(element, text);
            }
            text.push_str("\r]");
        }
        Value::Object(members) => {
            text.push_str("{ ");
            for (at, (name, element)) in members.iter().rev().enumerate() {
                text.push_str(if at > 0 { " , " } else { "" });
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push_str(" : ");
                rearranged(element, text);
            }
            text.push_str(" }");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

/// The significant digits of a number's text.
fn digits(number: &str) -> String {
    let mantissa = number.split('e').next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

proptest! {
    // R51
    #[test]
    fn members_and_white_space_may_be_arranged_in_any_way(value in value()) {
        let mut other = String::new();
        rearranged(&value, &mut other);
        let canonical = text(&value.to_string());
        prop_assert!(canonical.is_some());
        prop_assert_eq!(text(&other), canonical);
    }

    #[test]
    fn the_canonical_form_means_what_the_text_meant(value in value()) {
        let canonical = text(&value.to_string()).unwrap();
        let again: Value = serde_json::from_str(&canonical).unwrap();
        prop_assert_eq!(text(&again.to_string()), Some(canonical));
    }

    #[test]
    fn different_numbers_are_different_texts(a in any::<u64>(), by in 1..1000_u64) {
        let b = a.wrapping_add(by);
        prop_assert_ne!(text(&a.to_string()), text(&b.to_string()));
        prop_assert_ne!(text(&format!("0.{a:020}")), text(&format!("0.{b:020}")));
    }

    /// From any notation of the same decimal. Not from another decimal that the double is the
    /// nearest to: of two shortest ones, languages may choose either.
    #[test]
    fn every_double_is_written_as_ecmascript_does(number in any::<f64>()) {
        prop_assume!(number.is_finite());
        let expected = ryu_js::Buffer::new().format_finite(number).to_owned();
        prop_assert_eq!(text(&expected), Some(expected.clone()));
        let rust = format!("{number:e}");
        if rust.parse::<f64>() == expected.parse() && digits(&rust) == digits(&expected) {
            prop_assert_eq!(text(&rust), Some(expected));
        }
    }

    #[test]
    fn exactly_json_is_read(body in r#"([\[\]{},:"\\ntu0a1.eE+ -]|null|true|"a"|"b":){0,8}"#) {
        let json = serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok();
        let read = text(&body).is_some();
        // What is left out of JSON: members named twice, lone surrogates.
        prop_assert!(!read || json, "{}", body);
        let twice = body.matches("\"a\"").count().max(body.matches("\"b\"").count()) > 1;
        prop_assert!(!json || read || twice || body.contains("\\u"), "{}", body);
    }
}
