//! What is a key and what is not.

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::{IdempotencyKey, KeyError, KeyFormat, KeyRules};

const NAME: HeaderName = HeaderName::from_static("idempotency-key");
const RULES: KeyRules = KeyRules { max_length: 255, format: KeyFormat::Any };

fn read_by(rules: KeyRules, lines: &[&[u8]]) -> Result<Option<String>, KeyError> {
    let mut headers = HeaderMap::new();
    for line in lines {
        // A value that no HTTP parser lets through does not reach the reader either.
        headers.append(NAME, HeaderValue::from_bytes(line).unwrap());
    }
    let key = IdempotencyKey::read(&headers, &NAME, rules)?;
    Ok(key.map(|key| key.as_str().to_owned()))
}

fn read(line: &str) -> Result<String, KeyError> {
    read_by(RULES, &[line.as_bytes()]).map(Option::unwrap)
}

#[test]
fn no_line_is_no_key() {
    assert_eq!(read_by(RULES, &[]), Ok(None));
}

#[test]
fn the_quoted_and_the_raw_form_are_the_same_key() {
    assert_eq!(read("abc-1"), Ok("abc-1".to_owned()));
    assert_eq!(read("\"abc-1\""), Ok("abc-1".to_owned()));
}

#[test]
fn white_space_around_a_key_does_not_count() {
    assert_eq!(read(" \tabc\t "), Ok("abc".to_owned()));
    assert_eq!(read("  \"abc\" "), Ok("abc".to_owned()));
}

#[test]
fn a_quoted_key_may_hold_what_a_raw_one_may_not() {
    assert_eq!(read(r#""a, b; \"c\" \\""#), Ok(r#"a, b; "c" \"#.to_owned()));
    assert_eq!(read(r#"" a ""#), Ok(" a ".to_owned()));
}

#[test]
fn an_empty_key_is_refused() {
    for line in ["", "  ", "\"\""] {
        assert_eq!(read(line), Err(KeyError::Empty), "{line:?}");
    }
}

#[test]
fn two_lines_are_refused_even_when_they_are_equal() {
    assert_eq!(read_by(RULES, &[b"a", b"a"]), Err(KeyError::Repeated { lines: 2 }));
}

#[test]
fn a_list_is_refused() {
    assert_eq!(read("a,b"), Err(KeyError::List { at: 1 }));
    assert_eq!(read("a, b"), Err(KeyError::List { at: 1 }));
    assert_eq!(read(r#""a", "b""#), Err(KeyError::List { at: 3 }));
    assert_eq!(read(r#""a" ,"b""#), Err(KeyError::List { at: 4 }));
}

#[test]
fn parameters_are_refused() {
    assert_eq!(read("a;q=1"), Err(KeyError::Parameters { at: 1 }));
    assert_eq!(read(r#""a";q="1""#), Err(KeyError::Parameters { at: 3 }));
    assert_eq!(read(r#""a";"#), Err(KeyError::Parameters { at: 3 }));
}

#[test]
fn a_malformed_value_is_refused_with_its_place() {
    assert_eq!(read("a b"), Err(KeyError::Space { at: 1 }));
    assert_eq!(read("a\"b"), Err(KeyError::Quote { at: 1 }));
    assert_eq!(read("\"ab"), Err(KeyError::Unterminated));
    assert_eq!(read("\"ab\\"), Err(KeyError::Unterminated));
    assert_eq!(read("\"ab\\\""), Err(KeyError::Unterminated));
    assert_eq!(read("\""), Err(KeyError::Unterminated));
    assert_eq!(read("\"a\"b"), Err(KeyError::Malformed { at: 3 }));
    assert!(matches!(read(r#""a\n""#), Err(KeyError::Malformed { .. })));
}

#[test]
fn control_and_non_ascii_bytes_are_refused_in_both_forms() {
    assert_eq!(read("a\tb"), Err(KeyError::Control { at: 1 }));
    assert_eq!(read("\"a\tb\""), Err(KeyError::Control { at: 2 }));
    assert_eq!(read("aé"), Err(KeyError::NotAscii { at: 1 }));
    assert_eq!(read_by(RULES, &[b"\"a\xff\""]), Err(KeyError::NotAscii { at: 2 }));
}

#[test]
fn the_length_counts_after_unquoting() {
    let rules = KeyRules { max_length: 3, ..RULES };
    assert_eq!(read_by(rules, &[b"abc"]), Ok(Some("abc".to_owned())));
    assert_eq!(read_by(rules, &[br#""a\\c""#]), Ok(Some("a\\c".to_owned())));
    assert_eq!(read_by(rules, &[b"abcd"]), Err(KeyError::TooLong { length: 4, max: 3 }));
    assert_eq!(read_by(rules, &[b"\"abcd\""]), Err(KeyError::TooLong { length: 4, max: 3 }));
}

#[test]
fn no_rule_allows_more_than_the_bound() {
    let rules = KeyRules { max_length: usize::MAX, ..RULES };
    assert!(read_by(rules, &[&[b'a'; 1024]]).is_ok());
    let error = KeyError::TooLong { length: 1025, max: 1024 };
    assert_eq!(read_by(rules, &[&[b'a'; 1025]]), Err(error));
}

#[test]
fn a_route_may_ask_for_hyphenated_uuids() {
    let rules = KeyRules { format: KeyFormat::Uuid, ..RULES };
    let uuid = b"8e03978e-40d5-43e8-bc93-6894a57f9324";
    assert!(read_by(rules, &[uuid]).is_ok());
    assert!(read_by(rules, &[b"\"8E03978E-40D5-43E8-BC93-6894A57F9324\""]).is_ok());
    for line in ["8e03978e40d543e8bc936894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f932g", "1"] {
        assert_eq!(read_by(rules, &[line.as_bytes()]), Err(KeyError::NotUuid), "{line}");
    }
}

#[test]
fn neither_debug_nor_an_error_shows_the_key() {
    let mut headers = HeaderMap::new();
    headers.append(NAME, HeaderValue::from_static("card-4242"));
    let key = IdempotencyKey::read(&headers, &NAME, RULES).unwrap().unwrap();
    assert_eq!(format!("{key:?}"), "IdempotencyKey(<9 bytes>)");
    assert!(!read("card-4242,x").unwrap_err().to_string().contains("4242"));
}

proptest! {
    #[test]
    fn any_line_is_read_without_a_panic(line in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(value) = HeaderValue::from_bytes(&line) {
            let headers = HeaderMap::from_iter([(NAME, value)]);
            drop(IdempotencyKey::read(&headers, &NAME, RULES));
        }
    }

    #[test]
    fn lines_of_the_grammars_own_characters_are_read_without_a_panic(line in r#"["\\,; a=\t]{0,9}"#) {
        drop(read(&line));
    }

    #[test]
    fn every_raw_key_equals_its_quoted_form(key in r"[!#-+\--:<-~]{1,255}") {
        let quoted = format!("\"{}\"", key.replace('\\', "\\\\"));
        prop_assert_eq!(read(&key), Ok(key.clone()));
        prop_assert_eq!(read(&quoted), Ok(key));
    }

    #[test]
    fn a_quoted_key_is_what_was_quoted(key in "[ -~]{1,255}") {
        let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
        prop_assert_eq!(read(&quoted), Ok(key));
    }
}
