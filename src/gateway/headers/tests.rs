//! Promises of this room.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use proptest::prelude::*;

use super::*;
use crate::domain::FencingToken;

fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let line = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let mut headers = HeaderMap::new();
    for (name, value) in lines.iter().map(line) {
        headers.append(name, value);
    }
    headers
}

fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

#[test]
fn a_request_without_hop_by_hop_fields_stays_as_it_is() {
    let before = map(&[("host", "a"), ("accept", "*/*"), ("cookie", "a=1"), ("cookie", "b=2")]);
    let mut after = before.clone();
    strip_request(&mut after, Upgrade::Remove);
    strip_forged(&mut after);
    assert_eq!(after, before);
}

#[test]
fn hop_by_hop_fields_and_those_that_connection_names_do_not_pass() {
    let mut headers = map(&[
        ("connection", "close, X-One ,,x-two"),
        ("connection", "X-Three"),
        ("x-one", "1"),
        ("x-two", "2"),
        ("x-two", "2"),
        ("x-three", "3"),
        ("x-four", "4"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy-authenticate", "Basic"),
        ("te", "trailers"),
        ("trailer", "x-sum"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAMAAABkAAQAAP__"),
    ]);
    strip_request(&mut headers, Upgrade::Remove);
    assert_eq!(headers, map(&[("x-four", "4")]));
}

#[test]
fn connection_may_not_name_what_must_arrive() {
    let protected = [name("idempotency-key"), name("x-api-key")];
    for line in ["Idempotency-Key", "close, X-API-KEY", "host", "keep-alive,content-length"] {
        let headers = map(&[("connection", "close"), ("connection", line)]);
        assert!(connection_names(&headers, &protected).is_some(), "{line}");
    }
    let harmless = map(&[("connection", "keep-alive, x-api-key-2, te"), ("idempotency-key", "a")]);
    assert_eq!(connection_names(&harmless, &protected), None);
}

#[test]
fn a_connection_line_that_is_no_text_names_nothing() {
    let mut headers = map(&[("x-one", "1")]);
    let line = HeaderValue::from_bytes(b"\xff\xfe, x-one").unwrap();
    headers.insert("connection", line);
    assert_eq!(connection_names(&headers, &[name("x-one")]), Some(name("x-one")));
    strip_request(&mut headers, Upgrade::Remove);
    assert!(headers.is_empty());
}

#[test]
fn only_a_websocket_may_be_asked_for_and_only_where_it_is_let_through() {
    let asked = [("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")];
    let mut headers = map(&asked);
    strip_request(&mut headers, Upgrade::Websocket);
    assert_eq!(headers, map(&[("connection", "upgrade"), ("upgrade", "WebSocket")]));

    let mut headers = map(&asked);
    strip_request(&mut headers, Upgrade::Remove);
    assert!(headers.is_empty());

    for lines in
        [[("connection", "upgrade"), ("upgrade", "h2c")], [("upgrade", "websocket"), ("te", "x")]]
    {
        let mut headers = map(&lines);
        strip_request(&mut headers, Upgrade::Websocket);
        assert!(headers.is_empty(), "{lines:?}");
    }
}

#[test]
fn an_answer_cannot_speak_for_the_gateway() {
    let mut headers = map(&[
        ("connection", "close"),
        ("idempotency-error-source", "gateway"),
        ("idempotency-expires", "never"),
        ("set-cookie", "a=1"),
    ]);
    strip_response(&mut headers, StatusCode::OK);
    assert_eq!(headers, map(&[("set-cookie", "a=1")]));
}

#[test]
fn a_switch_of_protocols_keeps_its_name() {
    let switched = [("connection", "Upgrade"), ("upgrade", "websocket")];
    let mut headers = map(&switched);
    strip_response(&mut headers, StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(headers.get("upgrade").unwrap(), "websocket");
    assert_eq!(headers.get("connection").unwrap(), "upgrade");

    let mut headers = map(&switched);
    strip_response(&mut headers, StatusCode::OK);
    assert!(headers.is_empty());
}

#[test]
fn a_client_cannot_forge_attempt_or_token_in_any_spelling() {
    let mut headers = map(&[
        ("idempotency-attempt", "7"),
        ("idempotency_attempt", "7"),
        ("idempotency-fencing-token", "7"),
        ("idempotency_fencing-token", "7"),
        ("idempotency-fencing_token", "7"),
        ("idempotency_fencing_token", "7"),
        ("idempotency-key", "a"),
        ("idempotency-attempts", "7"),
    ]);
    strip_forged(&mut headers);
    assert_eq!(headers, map(&[("idempotency-key", "a"), ("idempotency-attempts", "7")]));

    add_attempt(&mut headers, 2, FencingToken::new(u64::MAX));
    assert_eq!(headers.get(IDEMPOTENCY_ATTEMPT).unwrap(), "2");
    assert_eq!(headers.get(IDEMPOTENCY_FENCING_TOKEN).unwrap(), "18446744073709551615");
}

#[test]
fn what_a_stranger_says_of_its_client_is_replaced() {
    let peer = Peer::new("192.0.2.1".parse().unwrap(), &["10.0.0.0/8".parse().unwrap()]);
    let mut headers = map(&[
        ("host", "api.example.com"),
        ("forwarded", "for=1.1.1.1"),
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "2.2.2.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil"),
    ]);
    forwarded_by(&mut headers, &peer);
    let expected = map(&[
        ("host", "api.example.com"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "api.example.com"),
    ]);
    assert_eq!(headers, expected);
}

#[test]
fn what_a_trusted_proxy_says_is_appended_to() {
    let trusted = ["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
    let peer = Peer::new("::ffff:10.1.2.3".parse().unwrap(), &trusted);
    assert!(peer.is_trusted());
    let mut headers = map(&[
        ("host", "inner"),
        ("forwarded", "for=1.1.1.1"),
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "2.2.2.2, 3.3.3.3"),
        ("x-forwarded-proto", "https"),
    ]);
    forwarded_by(&mut headers, &peer);
    let expected = map(&[
        ("host", "inner"),
        ("forwarded", "for=1.1.1.1"),
        ("x-forwarded-for", "1.1.1.1, 2.2.2.2, 3.3.3.3, 10.1.2.3"),
        ("x-forwarded-proto", "https, http"),
        ("x-forwarded-host", "inner"),
    ]);
    assert_eq!(headers, expected);
}

#[test]
fn a_request_without_host_tells_no_stale_one() {
    let mut headers = map(&[("x-forwarded-host", "evil")]);
    forwarded_by(&mut headers, &Peer::new("192.0.2.1".parse().unwrap(), &[]));
    assert!(!headers.contains_key("x-forwarded-host"));
}

#[test]
fn the_gateway_is_named_last_among_those_that_passed_the_request_on() {
    let mut headers = map(&[("via", "1.1 first")]);
    via(&mut headers, Version::HTTP_11);
    via(&mut headers, Version::HTTP_10);
    let lines: Vec<_> = headers.get_all("via").iter().collect();
    assert_eq!(lines, ["1.1 first", "1.1 oncegate", "1.0 oncegate"]);
}

#[test]
fn a_good_request_id_is_kept_and_any_other_is_replaced() {
    let mut headers = map(&[("x-request-id", "order/7!")]);
    assert_eq!(request_id(&mut headers), "order/7!");

    let longest: &str = &"a".repeat(128);
    let long: &str = &"a".repeat(129);
    let mut headers = HeaderMap::new();
    headers.insert(REQUEST_ID, longest.parse().unwrap());
    assert_eq!(request_id(&mut headers), longest);
    for bad in ["", "two words", long] {
        headers.insert(REQUEST_ID, bad.parse().unwrap());
        let id = request_id(&mut headers);
        assert_eq!(id.len(), 32, "{bad:?}");
        assert_eq!(headers.get_all(REQUEST_ID).iter().collect::<Vec<_>>(), [&id]);
    }
    let mut two = map(&[("x-request-id", "a"), ("x-request-id", "b")]);
    assert_eq!(request_id(&mut two).len(), 32);
}

// R37, R39, R41: what is replayed, and what never is.
#[test]
fn an_answer_is_stored_without_what_was_for_one_caller_at_one_time() {
    let headers = map(&[
        ("location", "/charges/1"),
        ("link", "<a>"),
        ("link", "<b>"),
        ("etag", "\"1\""),
        ("content-encoding", "gzip"),
        ("content-type", "application/json"),
        ("content-length", "12"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-debug"),
        ("x-debug", "1"),
        ("set-cookie", "session=1"),
        ("set-cookie", "b=2"),
        ("www-authenticate", "Basic"),
        ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("server", "upstream"),
        ("idempotency-error-source", "gateway"),
        ("idempotency-expires", "never"),
        ("idempotent-replayed", "true"),
        ("x-trace", "7"),
    ]);
    let stored = storable(headers, &name("idempotent-replayed"), &[name("x-trace")]);
    let expected = map(&[
        ("location", "/charges/1"),
        ("link", "<a>"),
        ("link", "<b>"),
        ("etag", "\"1\""),
        ("content-encoding", "gzip"),
        ("content-type", "application/json"),
    ]);
    assert_eq!(stored, expected);
}

proptest! {
    /// Whatever `Connection` says, what it does not name arrives byte for byte and in order.
    #[test]
    fn stripping_touches_nothing_else(
        values in prop::collection::vec(prop::collection::vec(0x80_u8..=0xff, 0..8), 0..6),
        options in "[a-z ,\\-]{0,40}",
    ) {
        let mut headers = HeaderMap::new();
        for value in &values {
            headers.append("x0-kept", HeaderValue::from_bytes(value).unwrap());
        }
        headers.append("connection", options.parse().unwrap());
        strip_request(&mut headers, Upgrade::Websocket);
        let kept: Vec<_> = headers.get_all("x0-kept").iter().map(HeaderValue::as_bytes).collect();
        prop_assert_eq!(kept, values);
        prop_assert!(!headers.contains_key("connection"));
    }
}
