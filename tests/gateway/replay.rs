//! A retry gets the answer of the first request, byte for byte.

use crate::support::{Answer, Config, Gateway, Request, Upstream, answer, chunked, get, post};

/// The first answer and a replay of it, which must be the same but for the mark.
async fn twice(upstream: &Upstream, rules: &str) -> (Answer, Answer) {
    let mut config = Config::to(upstream.address);
    if !rules.is_empty() {
        config = config.rules(rules);
    }
    let (gateway, _home) = Gateway::start(&config).await;
    let first = gateway.ask(&post("k")).await;
    let replay = gateway.ask(&post("k")).await;
    assert_eq!(upstream.count(), 1);
    (first, replay)
}

// R23, R37, R41, R42
#[tokio::test]
async fn a_replay_has_the_status_the_lines_and_the_bytes_of_the_first_answer() {
    let mut bytes = b"HTTP/1.1 201 Created\r\nLocation: /v1/charges/1\r\nETag: \"a\"\r\n".to_vec();
    bytes.extend_from_slice(b"Link: <a>\r\nLink: <b>\r\nX-Name: J\xf6rg \xff\r\n");
    bytes.extend_from_slice(b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\x1f\x8b\0\n\r");
    let upstream = Upstream::always(vec![crate::support::Step::Write(bytes)]).await;

    let (first, replay) = twice(&upstream, "").await;

    for answer in [&first, &replay] {
        assert_eq!(answer.status, 201);
        assert_eq!(answer.header("location"), Some("/v1/charges/1"));
        assert_eq!(answer.header("etag"), Some("\"a\""));
        assert_eq!(answer.lines("link"), [b"<a>", b"<b>"]);
        assert_eq!(answer.lines("x-name"), [b"J\xf6rg \xff"]);
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        assert_eq!(answer.body, b"\x1f\x8b\0\n\r");
    }
    assert_eq!(first.lasting(), replay.lasting());
    assert!(!first.is_replay() && replay.is_replay());
}

#[tokio::test]
async fn answers_without_a_body_are_replayed_with_their_framing() {
    for status in ["204 No Content", "304 Not Modified", "200 OK"] {
        let upstream = Upstream::always(answer(status, "X-Part: 1\r\n", "")).await;

        let (first, replay) = twice(&upstream, "").await;

        let length = (status == "200 OK").then_some("0");
        for answer in [&first, &replay] {
            assert_eq!(answer.status.to_string(), status[..3]);
            assert_eq!(answer.header("content-length"), length, "{answer:?}");
            assert_eq!(answer.header("transfer-encoding"), None);
        }
        assert_eq!(first.lasting(), replay.lasting());
    }
}

#[tokio::test]
async fn a_connection_is_usable_after_answers_without_a_body() {
    let upstream = Upstream::always(answer("204 No Content", "", "")).await;
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let mut client = crate::support::Client::connect(gateway.address).await;
    for _ in 0..3 {
        client.send(&post("k")).await;
        assert_eq!(client.answer().await.status, 204);
    }
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn an_answer_in_chunks_is_replayed_with_its_length() {
    let upstream = Upstream::always(chunked("200 OK", "X-Part: 1\r\n", &["one ", "two"])).await;

    let (first, replay) = twice(&upstream, "").await;

    assert_eq!(first.body, b"one two");
    assert_eq!(replay.header("content-length"), Some("7"));
    assert_eq!(replay.header("transfer-encoding"), None);
    assert_eq!(first.lasting(), replay.lasting());
}

#[tokio::test]
async fn the_head_of_an_unkeyed_answer_keeps_its_length_without_a_body() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n".to_vec();
    let upstream = Upstream::always(vec![crate::support::Step::Write(head)]).await;
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let mut client = crate::support::Client::connect(gateway.address).await;
    for target in ["/v1/charges/1", "/elsewhere"] {
        let request = Request::new("HEAD", target);
        client.send(&request).await;
        let answer = client.answer_to(&request).await;
        assert_eq!((answer.status, answer.header("content-length")), (200, Some("42")));
    }
    assert_eq!(upstream.count(), 2);
}

// R39
#[tokio::test]
async fn what_belongs_to_one_caller_or_one_moment_is_not_replayed() {
    let lines = "Set-Cookie: s=1\r\nSet-Cookie: t=2\r\nWWW-Authenticate: Basic\r\n\
                 Date: Tue, 15 Nov 1994 08:12:31 GMT\r\nServer: upstream\r\nX-Own: 1\r\nX-Kept: 1\r\n\
                 Idempotent-Replayed: forged\r\nIdempotency-Error-Source: forged\r\n\
                 Idempotency-Expires: forged\r\n";
    let upstream = Upstream::always(answer("200 OK", lines, "ok")).await;

    let (first, replay) = twice(&upstream, "drop_headers: [X-Own]").await;

    assert_eq!(first.lines("set-cookie").len(), 2);
    assert_eq!(first.header("x-own"), Some("1"));
    for name in ["set-cookie", "www-authenticate", "server", "x-own", "idempotency-error-source"] {
        assert!(replay.lines(name).is_empty(), "{name}: {replay:?}");
    }
    assert_ne!(replay.header("date"), Some("Tue, 15 Nov 1994 08:12:31 GMT"));
    assert_eq!(replay.header("x-kept"), Some("1"));
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    for answer in [&first, &replay] {
        assert_eq!(answer.header("idempotency-error-source"), None);
        assert_ne!(answer.header("idempotency-expires"), Some("forged"));
    }
}

// R49, R71, R22
#[tokio::test]
async fn first_answer_and_replay_tell_the_same_end_of_their_retention() {
    let upstream = Upstream::start().await;

    let (first, replay) = twice(&upstream, "retention: { completed: 2h }").await;

    let expires = first.header("idempotency-expires").unwrap();
    assert_eq!(replay.header("idempotency-expires"), Some(expires));
    let expires = httpdate::parse_http_date(expires).unwrap();
    let now = httpdate::parse_http_date(replay.header("date").unwrap()).unwrap();
    let left = expires.duration_since(now).unwrap().as_secs();
    assert!((7100..=7200).contains(&left), "{left} s");
}

#[tokio::test]
async fn the_mark_of_a_replay_has_the_name_that_the_route_gives_it() {
    let upstream = Upstream::always(answer("200 OK", "X-Again: maybe\r\n", "")).await;

    let (first, replay) = twice(&upstream, "replay_header: X-Again").await;

    assert_eq!(first.lines("idempotent-replayed").len(), 0);
    assert_eq!(replay.header("x-again"), Some("true"));
    assert_eq!(replay.lines("idempotent-replayed").len(), 0);
}

#[tokio::test]
async fn every_answer_has_the_request_id_of_its_own_request() {
    let upstream = Upstream::always(answer("200 OK", "X-Request-Id: upstream\r\n", "")).await;
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;

    let first = gateway.ask(&post("k").header("X-Request-Id", "first")).await;
    assert_eq!(upstream.last().header("x-request-id"), Some("first"));
    let replay = gateway.ask(&post("k").header("X-Request-Id", "second")).await;
    let unnamed = gateway.ask(&post("k")).await;

    assert!(!first.is_replay());
    assert_eq!(replay.header("x-request-id"), Some("second"));
    let made = unnamed.header("x-request-id").unwrap();
    assert!(!["first", "second", "upstream", ""].contains(&made), "{made}");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_stored_failure_tells_sdks_not_to_hammer_it() {
    for (status, said, expected) in [
        ("500 Internal Server Error", "", Some("false")),
        ("409 Conflict", "", Some("false")),
        ("500 Internal Server Error", "Stripe-Should-Retry: true\r\n", Some("true")),
        ("400 Bad Request", "", None),
        ("201 Created", "", None),
    ] {
        let upstream = Upstream::always(answer(status, said, "no")).await;
        let (first, replay) = twice(&upstream, "").await;
        for answer in [&first, &replay] {
            assert_eq!(answer.header("stripe-should-retry"), expected, "{answer:?}");
        }
        assert!(replay.is_replay());
    }
}

#[tokio::test]
async fn a_replay_survives_a_restart_byte_for_byte() {
    let lines = "X-Name: \u{fc}\r\nX-Name: 2\r\n";
    let upstream = Upstream::always(answer("202 Accepted", lines, "body\0")).await;
    let config = Config::to(upstream.address).durable();
    let (gateway, home) = Gateway::start(&config).await;
    let first = gateway.ask(&post("k")).await;
    gateway.kill();

    let gateway = home.start(&config).await;
    let replay = gateway.ask(&post("k")).await;

    assert!(replay.is_replay());
    assert_eq!(first.lasting(), replay.lasting());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_raw_key_and_a_structured_one_are_the_same_key_and_go_upstream_as_they_came() {
    let upstream = Upstream::start().await;
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let first = gateway.ask(&post("\"k-1\"")).await;
    let replay = gateway.ask(&post("k-1")).await;
    assert_eq!(first.lasting(), replay.lasting());
    assert_eq!((upstream.count(), upstream.last().key()), (1, "\"k-1\""));
}

#[tokio::test]
async fn the_upstream_is_told_the_attempt_and_a_token_that_only_the_gateway_can_set() {
    let upstream = Upstream::start().await;
    let config = Config::to(upstream.address).rules("forward_key: strip");
    let (gateway, _home) = Gateway::start(&config).await;
    let forged = post("k")
        .header("Idempotency-Attempt", "7")
        .header("Idempotency_Attempt", "7")
        .header("Idempotency-Fencing-Token", "7")
        .header("idempotency_fencing-token", "7");
    gateway.ask(&forged).await;

    let received = upstream.last();
    assert_eq!(received.header("idempotency-attempt"), Some("1"));
    let token: u64 = received.header("idempotency-fencing-token").unwrap().parse().unwrap();
    assert!(token > 7);
    assert_eq!(received.key(), "");
    let forged = received.headers.iter().filter(|(_, value)| value == b"7").count();
    assert_eq!(forged, 0, "{received:?}");

    gateway.ask(&get("/elsewhere").header("Idempotency-Attempt", "7")).await;
    assert_eq!(upstream.last().header("idempotency-attempt"), None);
}
