//! What an upstream can do wrong, and what its answers mean for the key.

use std::{future::pending, net::SocketAddr};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::support::{
    Answer, Client, Config, Gateway, Home, Refusing, Script, Step, Upstream, answer, get, post,
};

async fn start(upstream: &Upstream) -> (Gateway, Home) {
    Gateway::start(&Config::to(upstream.address)).await
}

fn told(answer: &Answer) -> (u16, String) {
    (answer.status, answer.code())
}

fn raw(bytes: impl AsRef<[u8]>) -> Step {
    Step::Write(bytes.as_ref().to_vec())
}

// R8, R9, R15, R16, R18
#[tokio::test]
async fn an_answer_that_is_cut_over_long_or_not_http_makes_the_key_unknown() {
    let head = "HTTP/1.1 200 OK\r\n";
    let scripts: [(&str, Script); 15] = [
        (
            "in an unknown coding",
            vec![raw(format!("{head}Transfer-Encoding: gzip\r\n\r\ncoded")), Step::Close],
        ),
        (
            "in two codings",
            vec![raw(format!(
                "{head}Transfer-Encoding: gzip, chunked\r\n\r\n5\r\ncoded\r\n0\r\n\r\n"
            ))],
        ),
        ("closed at once", vec![Step::Close]),
        ("reset", vec![Step::Reset]),
        ("cut in its head", vec![raw(&head[..10]), Step::Close]),
        ("cut in its body", vec![raw(format!("{head}Content-Length: 9\r\n\r\nhalf")), Step::Close]),
        (
            "cut in a chunk",
            vec![raw(format!("{head}Transfer-Encoding: chunked\r\n\r\n9\r\nhalf")), Step::Close],
        ),
        ("over-long", vec![raw(format!("{head}Content-Length: 2\r\n\r\nover-long"))]),
        ("not HTTP", vec![raw("220 smtp.test ESMTP\r\n\r\n")]),
        ("framed badly", vec![raw(format!("{head}Content-Length: many\r\n\r\n"))]),
        (
            "framed twice",
            vec![raw(format!("{head}Content-Length: 2\r\nContent-Length: 4\r\n\r\nover"))],
        ),
        (
            "reset before its end",
            vec![raw(format!("{head}Connection: close\r\n\r\nhalf")), Step::Reset],
        ),
        ("with an endless head", vec![raw(format!("{head}X-Long: {}\r\n", "x".repeat(300_000)))]),
        (
            "with nothing but interim answers",
            vec![raw("HTTP/1.1 100 Continue\r\n\r\n"), Step::Close],
        ),
        ("of another protocol", vec![raw("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n")]),
    ];
    for (what, script) in scripts {
        let upstream = Upstream::always(script);
        let (gateway, _home) = start(&upstream).await;
        let first = gateway.ask(&post("k")).await;
        assert_eq!(told(&first), (502, "upstream-interrupted".into()), "{what}");
        assert_eq!(first.json()["outcome"], "unknown");

        upstream.now(|_| answer("200 OK", "", "late"));
        let retry = gateway.ask(&post("k")).await;

        assert_eq!(told(&retry), (409, "outcome-unknown".into()), "{what}");
        assert_eq!(upstream.count(), 1, "{what}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_is_whole() {
    for head in ["HTTP/1.1 200 OK\r\nConnection: close", "HTTP/1.0 200 OK"] {
        let script = vec![raw(format!("{head}\r\n\r\nto the end")), Step::Close];
        let upstream = Upstream::always(script);
        let (gateway, _home) = start(&upstream).await;
        assert_eq!(gateway.ask(&post("k")).await.body, b"to the end");
        let replay = gateway.ask(&post("k")).await;
        assert_eq!((replay.is_replay(), &*replay.body), (true, &b"to the end"[..]));
        let plain = gateway.ask(&get("/elsewhere")).await;
        assert_eq!((plain.status, &*plain.body), (200, &b"to the end"[..]));
    }
}

/// Two lengths read by two parsers are two answers (RFC 9112 section 6.3).
#[tokio::test]
async fn an_answer_with_chunks_and_a_length_has_the_length_of_its_chunks() {
    let script =
        vec![raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
                           5\r\nabcde\r\n0\r\n\r\n")];
    let upstream = Upstream::always(script);
    let (gateway, _home) = start(&upstream).await;
    for request in [post("k"), post("k"), get("/elsewhere"), get("/v1/charges/x")] {
        let answer = gateway.ask(&request).await;
        assert_eq!((answer.status, &*answer.body), (200, &b"abcde"[..]));
        assert_ne!(answer.header("content-length"), Some("3"));
    }
}

#[tokio::test]
async fn interim_answers_are_not_the_answer() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n";
    let mut script = vec![raw(interim), raw("HTTP/1.1 100 Continue\r\n\r\n")];
    script.extend(answer("201 Created", "", "done"));
    let upstream = Upstream::always(script);
    let (gateway, _home) = start(&upstream).await;
    for request in [post("k"), post("k"), get("/elsewhere")] {
        let answer = gateway.ask(&request).await;
        assert_eq!((answer.status, &*answer.body), (201, &b"done"[..]));
    }
    assert_eq!(upstream.count(), 2);
}

// R15, R16, R17
#[tokio::test]
async fn an_upstream_that_closes_after_each_answer_strands_no_payment() {
    let mut script = answer("201 Created", "", "done");
    script.push(Step::CloseAndTell);
    let upstream = Upstream::always(script);
    let (gateway, _home) = start(&upstream).await;
    let mut client = Client::connect(gateway.address).await;
    for number in 0..100 {
        client.send(&post(&format!("k-{number}"))).await;
        assert_eq!(client.answer().await.status, 201, "request {number}");
        // Sent a moment earlier, the next one could not have known.
        upstream.closed(number + 1).await;
    }
    assert_eq!(upstream.count(), 100);
}

#[tokio::test]
async fn connections_are_used_again() {
    let upstream = Upstream::start();
    let (gateway, _home) = start(&upstream).await;
    let mut client = Client::connect(gateway.address).await;
    for number in 0..20 {
        client.send(&post(&format!("k-{number}"))).await;
        assert_eq!(client.answer().await.status, 201);
    }
    assert_eq!((upstream.count(), upstream.connections()), (20, 1));
}

#[tokio::test]
async fn nothing_sent_frees_the_key_however_often() {
    let refusing = Refusing::new();
    let (gateway, _home) = Gateway::start(&Config::to(refusing.address).durable()).await;
    for _ in 0..3 {
        let refused = gateway.ask(&post("k")).await;
        assert_eq!(told(&refused), (502, "upstream-unreachable".into()));
        assert_eq!(refused.json()["outcome"], "not_sent");
    }
    let upstream = refusing.listen();
    // Freed, so that even another request may have the key.
    assert_eq!(gateway.ask(&post("k").body("amount=6")).await.status, 201);
    assert_eq!(upstream.count(), 1);
    assert_eq!(upstream.last().header("idempotency-attempt"), Some("1"));
}

#[tokio::test]
async fn as_long_as_one_endpoint_lives_requests_are_served() {
    for balance in ["least_requests", "round_robin"] {
        let (alive, dead) = (Upstream::start(), Refusing::new());
        let config = Config::to_all([dead.address, alive.address]);
        let config = config.upstream(&format!("balance: {balance}"));
        let (gateway, _home) = Gateway::start(&config).await;
        for number in 0..10 {
            assert_eq!(gateway.ask(&post(&format!("k-{number}"))).await.status, 201);
        }
        assert_eq!(alive.count(), 10);
    }
}

#[tokio::test]
async fn endpoints_share_the_requests() {
    for balance in ["least_requests", "round_robin"] {
        let (one, two) = (Upstream::start(), Upstream::start());
        let config = Config::to_all([one.address, two.address]);
        let config = config.upstream(&format!("balance: {balance}"));
        let (gateway, _home) = Gateway::start(&config).await;
        for number in 0..10 {
            gateway.ask(&post(&format!("k-{number}"))).await;
        }
        assert_eq!((one.count(), two.count()), (5, 5), "{balance}");
    }
}

/// The first answer, then a retry with another answer ready: whether it ran again, and its code.
async fn fate(rules: &str, status: &str, lines: &str) -> &'static str {
    let upstream = Upstream::always(answer(status, lines, "said"));
    let mut config = Config::to(upstream.address);
    if !rules.is_empty() {
        config = config.rules(rules);
    }
    let (gateway, _home) = Gateway::start(&config).await;
    let first = gateway.ask(&post("k")).await;
    assert_eq!((first.status.to_string(), &*first.body), (status[..3].into(), &b"said"[..]));
    assert!(!first.is_replay());
    upstream.now(|_| answer("200 OK", "", "again"));
    let retry = gateway.ask(&post("k")).await;
    match upstream.count() {
        2 => {
            assert_eq!((retry.status, &*retry.body), (200, &b"again"[..]));
            assert_eq!(first.header("idempotency-expires"), None);
            "released"
        }
        1 if retry.is_replay() => {
            assert_eq!(retry.lasting(), first.lasting());
            "stored"
        }
        1 => {
            assert_eq!(told(&retry), (409, "outcome-unknown".into()));
            assert_eq!(first.header("idempotency-expires"), None);
            "unknown"
        }
        count => panic!("{count} executions"),
    }
}

// R12, R69
#[tokio::test]
async fn the_upstreams_status_decides_about_the_key() {
    for status in
        ["200 OK", "302 Found", "400 No", "404 No", "409 No", "422 No", "500 No", "501 No"]
    {
        assert_eq!(fate("", status, "").await, "stored", "{status}");
    }
    for status in ["401 No", "403 No", "425 No", "429 No"] {
        assert_eq!(fate("", status, "").await, "released", "{status}");
    }
    assert_eq!(fate("", "503 No", "Retry-After: 1\r\n").await, "released");
    for status in ["408 No", "502 No", "503 No", "504 No", "599 No"] {
        assert_eq!(fate("", status, "").await, "unknown", "{status}");
    }
}

#[tokio::test]
async fn the_routes_own_table_beats_the_defaults_and_a_status_beats_its_class() {
    let rules = "responses: { '404': release, '5xx': store, '502': unknown, '429': store }";
    for (status, fated) in [
        ("404 No", "released"),
        ("400 No", "stored"),
        ("503 No", "stored"),
        ("504 No", "stored"),
        ("502 No", "unknown"),
        ("429 No", "stored"),
        ("403 No", "released"),
    ] {
        assert_eq!(fate(rules, status, "").await, fated, "{status}");
    }
    assert_eq!(fate(rules, "503 No", "Retry-After: 1\r\n").await, "stored");
}

// R20
#[tokio::test]
async fn a_conflict_on_a_second_attempt_is_no_answer_about_the_first() {
    let upstream = Upstream::always(vec![Step::Close]);
    let config = Config::to(upstream.address).rules("unknown_outcome: retry");
    let (gateway, _home) = Gateway::start(&config).await;
    gateway.ask(&post("k")).await;
    upstream.now(|_| answer("409 Conflict", "", "in progress over there"));
    let conflict = gateway.ask(&post("k")).await;
    assert_eq!((conflict.status, &*conflict.body), (409, &b"in progress over there"[..]));
    assert_eq!(conflict.header("idempotency-expires"), None);

    upstream.now(|_| answer("201 Created", "", "the first one's"));
    let third = gateway.ask(&post("k")).await;

    assert_eq!((third.status, third.is_replay()), (201, false));
    assert_eq!(upstream.last().header("idempotency-attempt"), Some("3"));
    assert!(gateway.ask(&post("k")).await.is_replay());
}

// 3.8: a takeover whose upstream cannot be reached keeps what was known.
#[tokio::test]
async fn an_attempt_that_sent_nothing_does_not_free_a_key_that_an_earlier_one_left_unknown() {
    let upstream = Upstream::always(vec![Step::Close]);
    let config = Config::to(upstream.address).durable().rules("unknown_outcome: retry");
    let (gateway, home) = Gateway::start(&config).await;
    gateway.ask(&post("k")).await;
    gateway.kill();
    let refusing = Refusing::new();
    let away = Config::to(refusing.address).durable().rules("unknown_outcome: retry");
    let gateway = home.start(&away).await;
    assert_eq!(told(&gateway.ask(&post("k")).await), (502, "upstream-unreachable".into()));
    assert_eq!(gateway.ask(&post("k").body("amount=6")).await.code(), "key-reused");
    gateway.kill();
    let reject = Config::to(refusing.address).durable();
    let gateway = home.start(&reject).await;
    assert_eq!(gateway.ask(&post("k")).await.code(), "outcome-unknown");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_not_sent() {
    let upstream = Upstream::start();
    let (gateway, home) = Gateway::start(&Config::to(upstream.address)).await;
    drop(gateway);
    let file = Config::to(upstream.address).upstream("connect_timeout: 5s").text("");
    let file = file.replace(&upstream.address.to_string(), "nobody.invalid:80");
    let gateway = home.start_with(&file).await;
    let refused = gateway.ask(&post("k")).await;
    assert_eq!(told(&refused), (502, "upstream-unreachable".into()));
    assert_eq!(refused.json()["outcome"], "not_sent");
}

/// Answers each request from its head alone, and reads nothing more.
async fn hasty(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        while !read.windows(4).any(|window| window == b"\r\n\r\n") {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
        }
        let early = "HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly";
        stream.write_all(early.as_bytes()).await.unwrap();
        // Keeps the connection open, so that no reset overtakes the answer.
        tokio::spawn(async move {
            let _stream = stream;
            pending::<()>().await;
        });
    }
}

#[tokio::test]
async fn an_answer_that_comes_before_the_request_is_read_is_the_answer() {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let config = Config::to(listener.local_addr().unwrap()).rules("max_request_body: 64MiB");
    let config = config.limits("buffered_bodies: 256MiB");
    let (gateway, _home) = Gateway::start(&config).await;
    let upstream = tokio::spawn(hasty(listener));
    // More than both sockets hold.
    let large = post("k").body(vec![b'x'; 16 * 1024 * 1024]);
    let first = gateway.ask(&large).await;
    assert_eq!((first.status, &*first.body), (413, &b"early"[..]));
    assert_eq!(gateway.ask(&large).await.lasting(), first.lasting());
    upstream.abort();
}

#[tokio::test]
async fn a_gateway_that_was_paused_while_its_upstream_answered_stores_the_answer() {
    let upstream = Upstream::holding();
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address).durable()).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    gateway.signal(Signal::STOP);
    upstream.go();
    let mut retry = Client::connect(gateway.address).await;
    retry.send(&post("k")).await;
    gateway.signal(Signal::CONT);
    let first = client.answer().await;
    assert_eq!(first.status, 201);
    assert_eq!(retry.answer().await.lasting(), first.lasting());
    assert_eq!(upstream.count(), 1);
}
