//! Paths as routes see them: unreserved escapes decoded, ambiguous ones named.

use std::borrow::Cow;

/// Decodes the escapes of unreserved characters (RFC 3986 section 2.3): the only ones that may be
/// decoded without changing what a path means. A path without them costs nothing.
pub(super) fn decoded(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let bytes = path.as_bytes();
    let mut text = String::with_capacity(path.len());
    let mut at = 0;
    while let Some(next) = path[at..].find('%').map(|found| at + found) {
        text.push_str(&path[at..next]);
        at = next + 1;
        match escaped(bytes, next) {
            Some(byte) if is_unreserved(byte) => {
                text.push(char::from(byte));
                at = next + 3;
            }
            Some(_) | None => text.push('%'),
        }
    }
    text.push_str(&path[at..]);
    Cow::Owned(text)
}

/// Why servers disagree on what this (decoded) path names, if they do. Where one route runs
/// requests once and another does not, a path that the upstream resolves to a guarded place must
/// not slip past its guard.
pub(super) fn ambiguity(decoded: &str) -> Option<&'static str> {
    let inner = decoded.strip_prefix('/').unwrap_or(decoded);
    let mut segments = inner.split('/').peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." | ".." => return Some("a dot segment"),
            // The last one may be empty: a trailing slash names a place of its own.
            "" if segments.peek().is_some() => return Some("an empty segment"),
            _ => {}
        }
    }
    let escaped_slash = |at: usize| escaped(decoded.as_bytes(), at) == Some(b'/');
    let found = decoded.match_indices('%').any(|(at, _)| escaped_slash(at));
    found.then_some("an escaped slash")
}

/// Whether `prefix`, without its trailing slash, is a whole number of the path's segments.
pub(super) fn starts_with(decoded: &str, prefix: &str) -> bool {
    match decoded.strip_prefix(prefix) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// The byte that the escape at `at` stands for.
fn escaped(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (high, low) = (digit(at + 1)?, digit(at + 2)?);
    u8::try_from(high * 16 + low).ok()
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_unreserved_escapes_are_decoded() {
        assert_eq!(decoded("/v1/charges"), "/v1/charges");
        assert_eq!(decoded("/%76%31/%63harges%7e"), "/v1/charges~");
        assert_eq!(decoded("/a%2fb%20c%3F"), "/a%2fb%20c%3F");
        assert_eq!(decoded("/%2e%2E/%"), "/../%");
        assert_eq!(decoded("/%4"), "/%4");
        assert_eq!(decoded("/%zz"), "/%zz");
    }

    #[test]
    fn a_prefix_is_whole_segments() {
        assert!(starts_with("/v1/charges", "/v1/charges"));
        assert!(starts_with("/v1/charges/x", "/v1/charges"));
        assert!(starts_with("/v1/charges/", "/v1/charges"));
        assert!(!starts_with("/v1/charges-old", "/v1/charges"));
        assert!(!starts_with("/V1/charges", "/v1/charges"));
        assert!(starts_with("/anything", ""));
    }

    #[test]
    fn paths_that_servers_read_differently_are_ambiguous() {
        for path in ["/a/../b", "/./a", "/a/..", "//a", "/a//b", "/a%2Fb", "/a%2fb", "/a/%2e%2e/b"]
        {
            assert!(ambiguity(&decoded(path)).is_some(), "{path}");
        }
        for path in ["/", "/a/", "/a.b/..c", "/a%20b", "*", "/...", "/%"] {
            assert!(ambiguity(&decoded(path)).is_none(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_decoded_without_panic_and_only_once_shrinks(path in "[/a-z0-9%.é]{0,40}") {
            let once = decoded(&path);
            prop_assert!(once.len() <= path.len());
            let _ = ambiguity(&once);
        }
    }
}
