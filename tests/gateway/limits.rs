//! Every bound, from both sides, and what a client that meets one is told.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Client, Config, Gateway, Home, Step, Upstream, answer, get, post, soon};

async fn start(change: impl FnOnce(Config) -> Config) -> (Upstream, Gateway, Home) {
    let upstream = Upstream::start();
    let (gateway, home) = Gateway::start(&change(Config::to(upstream.address))).await;
    (upstream, gateway, home)
}

// R65
#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_read_or_anything_is_forwarded() {
    let (upstream, gateway, _home) = start(|config| config.rules("max_request_body: 10B")).await;
    assert_eq!(gateway.ask(&post("k").body("0123456789")).await.status, 201);
    let refused = gateway.ask(&post("l").body("0123456789x")).await;
    assert_eq!((refused.status, refused.code().as_str()), (413, "request-too-large"));
    assert_eq!(refused.json()["new_key_safe"], true);

    let announced = post("l").body("").header("Content-Length", "1000000000");
    let mut client = Client::connect(gateway.address).await;
    client.send_bytes(&announced.head()).await;
    assert_eq!(client.answer().await.status, 413);
    let chunked = post("l").body("").header("Transfer-Encoding", "chunked");
    let mut client = Client::connect(gateway.address).await;
    client.send(&chunked).await;
    client.send_bytes(b"b\r\n0123456789x\r\n").await;
    assert_eq!(client.answer().await.status, 413);

    let asking = announced.header("Expect", "100-continue");
    let mut client = Client::connect(gateway.address).await;
    client.send_bytes(&asking.head()).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.interim.len()), (413, 0), "it was told to go on");

    // No lock was taken for it.
    assert_eq!(gateway.ask(&post("l")).await.status, 201);
    assert_eq!(upstream.count(), 2);
}

#[tokio::test]
async fn a_client_reads_why_its_body_is_too_large_though_it_is_still_sending() {
    let (upstream, gateway, _home) = start(|config| config).await;
    let mut client = Client::connect(gateway.address).await;
    let request = post("k").body(vec![b'x'; 10 * 1024 * 1024]).bytes();
    let (mut reading, mut writing) = client.stream.split();
    let mut read = Vec::new();
    let sent = async {
        // The gateway may close before it has all.
        writing.write_all(&request).await.ok();
        writing.shutdown().await.ok();
    };
    let received = async {
        // A reset would lose the answer: what was read until then is all that counts.
        reading.read_to_end(&mut read).await.ok();
    };
    soon("the answer to a large body", async { tokio::join!(sent, received) }).await;
    let text = String::from_utf8_lossy(&read);
    assert!(text.starts_with("HTTP/1.1 413 "), "{text}");
    assert!(text.contains("request-too-large"), "{text}");
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn a_head_that_comes_too_slowly() {
    let (upstream, gateway, _home) = start(|config| config.listen("header_timeout: 100ms")).await;
    let mut client = Client::connect(gateway.address).await;
    client.send_bytes(b"POST /v1/charges HTT").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "request-timeout"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.is_closed().await);
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn a_keyed_body_that_comes_too_slowly_touches_no_key() {
    let (upstream, gateway, _home) = start(|config| config.listen("body_timeout: 100ms")).await;
    let request = post("k").bytes();
    let mut client = Client::connect(gateway.address).await;
    client.send_bytes(&request[..request.len() - 1]).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "request-timeout"));
    assert_eq!(answer.json()["outcome"], "not_sent");
    assert_eq!(answer.header("stripe-should-retry"), Some("true"));
    assert!(client.is_closed().await);
    assert_eq!(upstream.count(), 0);
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
}

#[tokio::test]
async fn an_unkeyed_body_that_pauses_too_long_is_given_up() {
    let (_upstream, gateway, _home) = start(|config| config.listen("body_timeout: 100ms")).await;
    let request = post("k").to("/elsewhere").bytes();
    let mut client = Client::connect(gateway.address).await;
    client.send_bytes(&request[..request.len() - 1]).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "request-timeout"));
}

#[tokio::test]
async fn a_head_over_the_limit() {
    let (upstream, gateway, _home) = start(|config| config.listen("max_header_size: 8KiB")).await;
    let fits = get("/elsewhere").header("X-Long", "x".repeat(7 * 1024));
    assert_eq!(gateway.ask(&fits).await.status, 201);
    let many = (0..101).fold(get("/elsewhere"), |head, line| head.header(&format!("X-{line}"), ""));
    for request in [
        many,
        get("/elsewhere").header("X-Long", "x".repeat(9 * 1024)),
        get(&format!("/{}", "x".repeat(9 * 1024))),
    ] {
        let mut client = Client::connect(gateway.address).await;
        client.send(&request).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.code().as_str()), (431, "headers-too-large"));
        assert!(client.is_closed().await);
    }
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_place_in_flight_belongs_to_the_execution_not_to_its_client() {
    let upstream = Upstream::holding();
    let config = Config::to(upstream.address).limits("max_in_flight: 1");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    drop(client);
    assert_eq!(gateway.ask(&post("other")).await.code(), "overloaded");
    upstream.go();
    gateway.metric_is("oncegate_keys_in_flight", &[], 0.0).await;
    upstream.go();
    assert_eq!(gateway.ask(&post("other")).await.status, 201);
    assert_eq!(upstream.count(), 2);
}

#[tokio::test]
async fn one_caller_cannot_take_every_place() {
    let upstream = Upstream::holding();
    let config = Config::to(upstream.address).limits("max_in_flight_per_scope: 1");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    assert_eq!(gateway.ask(&post("other")).await.code(), "overloaded");
    let mut bob = Client::connect(gateway.address).await;
    bob.send(&post("k").caller("bob")).await;
    upstream.received(2).await;
    upstream.go();
    upstream.go();
    assert_eq!((client.answer().await.status, bob.answer().await.status), (201, 201));
}

#[tokio::test]
async fn bodies_held_at_once_are_bounded() {
    let upstream = Upstream::holding();
    // Room for one request and one answer.
    let config = Config::to(upstream.address)
        .rules("max_request_body: 32KiB, max_stored_body: 32KiB")
        .limits("buffered_bodies: 64KiB");
    let (gateway, _home) = Gateway::start(&config).await;
    let large = vec![b'x'; 32 * 1024];
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k").body(large.clone())).await;
    upstream.received(1).await;
    gateway.metric_is("oncegate_buffered_bytes", &[], 65_536.0).await;
    let refused = gateway.ask(&post("other")).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
    upstream.go();
    assert_eq!(client.answer().await.status, 201);
    upstream.go();
    assert_eq!(gateway.ask(&post("other").body(large)).await.status, 201);
    gateway.metric_is("oncegate_buffered_bytes", &[], 0.0).await;
}

// R45, R47, R48
#[tokio::test]
async fn an_answer_of_exactly_the_bound_is_kept_and_one_byte_more_is_given_once() {
    for durability in ["memory", "fsync"] {
        for (length, is_kept) in [(1024, true), (1025, false), (200_000, false)] {
            let body = "x".repeat(length);
            let whole = answer("201 Created", "X-Part: 1\r\n", &body);
            let chunks: Vec<_> = body.as_bytes().chunks(1000).collect();
            let chunks: Vec<_> =
                chunks.iter().map(|chunk| std::str::from_utf8(chunk).unwrap()).collect();
            let chunked = crate::support::chunked("201 Created", "X-Part: 1\r\n", &chunks);
            for script in [whole, chunked] {
                let upstream = Upstream::always(script);
                let mut config = Config::to(upstream.address).rules("max_stored_body: 1KiB");
                config.durability = durability;
                let (gateway, _home) = Gateway::start(&config).await;
                let first = gateway.ask(&post("k")).await;
                assert_eq!((first.status, first.body.len()), (201, length));
                assert!(first.header("idempotency-expires").is_some());
                let retry = gateway.ask(&post("k")).await;
                if is_kept {
                    assert_eq!(retry.lasting(), first.lasting());
                } else {
                    assert_eq!((retry.status, retry.code().as_str()), (409, "not-replayable"));
                }
                assert_eq!(upstream.count(), 1);
            }
        }
    }
}

// R45
#[tokio::test]
async fn the_rest_of_a_large_answer_streams_and_joined_requests_are_told() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n";
    let upstream = Upstream::always(vec![
        Step::Wait,
        Step::Write(format!("{head}{}", "a".repeat(2000)).into_bytes()),
        Step::Wait,
        Step::Write(vec![b'b'; 2000]),
    ]);
    let config = Config::to(upstream.address).rules("max_stored_body: 1KiB");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut leader = Client::connect(gateway.address).await;
    leader.send(&post("k")).await;
    upstream.received(1).await;
    let mut joined = Client::connect(gateway.address).await;
    joined.send(&post("k")).await;
    gateway.waiters(1).await;
    upstream.go();

    assert_eq!(leader.head().await.unwrap().header("content-length"), Some("4000"));
    assert_eq!(leader.exactly(2000).await.unwrap(), vec![b'a'; 2000]);
    assert_eq!(joined.answer().await.code(), "not-replayable");
    assert_eq!(gateway.ask(&post("k")).await.code(), "not-replayable");
    upstream.go();
    assert_eq!(leader.exactly(2000).await.unwrap(), vec![b'b'; 2000]);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn connections_over_the_bound_wait_for_a_place() {
    let (upstream, gateway, _home) = start(|config| config.listen("max_connections: 1")).await;
    let mut first = Client::connect(gateway.address).await;
    first.send(&get("/elsewhere")).await;
    assert_eq!(first.answer().await.status, 201);
    let mut second = Client::connect(gateway.address).await;
    second.send(&get("/elsewhere")).await;
    first.send(&get("/elsewhere")).await;
    assert_eq!(first.answer().await.status, 201);
    assert_eq!(upstream.count(), 2);
    drop(first);
    assert_eq!(second.answer().await.status, 201);
}

#[tokio::test]
async fn a_large_answer_that_is_not_stored_is_given_whole_and_decides_about_its_key() {
    for (status, runs_again) in [("429 Busy", true), ("504 Late", false)] {
        let large = "x".repeat(100_000);
        let upstream = Upstream::always(answer(status, "", &large));
        let config = Config::to(upstream.address).durable().rules("max_stored_body: 1KiB");
        let (gateway, _home) = Gateway::start(&config).await;
        let first = gateway.ask(&post("k")).await;
        assert_eq!((first.status.to_string(), first.body.len()), (status[..3].into(), 100_000));
        upstream.now(|_| answer("201 Created", "", "done"));
        let retry = gateway.ask(&post("k")).await;
        assert_eq!(retry.status, if runs_again { 201 } else { 409 });
        assert_eq!(upstream.count(), if runs_again { 2 } else { 1 });
    }
}

#[tokio::test]
async fn requests_that_joined_a_large_answer_that_frees_the_key_run_on_their_own() {
    let mut script = vec![Step::Wait];
    script.extend(answer("429 Busy", "", "x".repeat(100_000)));
    let upstream = Upstream::always(script);
    let config = Config::to(upstream.address).rules("max_stored_body: 1KiB");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut leader = Client::connect(gateway.address).await;
    leader.send(&post("k")).await;
    upstream.received(1).await;
    let mut joined = Client::connect(gateway.address).await;
    joined.send(&post("k")).await;
    gateway.waiters(1).await;
    upstream.now(|_| answer("201 Created", "", "done"));
    upstream.go();
    assert_eq!(leader.answer().await.status, 429);
    let answer = joined.answer().await;
    assert_eq!((answer.status, answer.is_replay()), (201, false));
    assert_eq!(upstream.count(), 2);
}
