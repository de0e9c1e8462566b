//! What of a request reaches the upstream, and what of an answer the client.

use crate::support::{Client, Config, Gateway, Home, Step, Upstream, answer, get, post};

async fn start() -> (Upstream, Gateway, Home) {
    let upstream = Upstream::start();
    let (gateway, home) = Gateway::start(&Config::to(upstream.address)).await;
    (upstream, gateway, home)
}

#[tokio::test]
async fn path_query_host_and_lines_are_forwarded_as_they_came() {
    let (upstream, gateway, _home) = start().await;
    for method in ["POST", "GET"] {
        let request = post("k").method(method).to("/v1/%63harges/a%20b?x=%2F&x&y=1");
        gateway
            .ask(&request.header("X-Name", b"J\xf6rg").header("X-Two", "1").header("X-Two", "2"))
            .await;
        let received = upstream.last();
        assert_eq!(received.target, "/v1/%63harges/a%20b?x=%2F&x&y=1");
        assert_eq!(received.method, method);
        assert_eq!(received.header("host"), Some("api.test"));
        let lines = |name: &str| -> Vec<_> {
            let lines = received.headers.iter().filter(|(line, _)| line == name);
            lines.map(|(_, value)| value.clone()).collect()
        };
        assert_eq!(lines("x-name"), [b"J\xf6rg"]);
        assert_eq!(lines("x-two"), [b"1", b"2"]);
        assert_eq!(lines("x-api-key"), [b"alice-secret"]);
    }
}

#[tokio::test]
async fn what_belongs_to_the_connection_stays_with_it() {
    let (upstream, gateway, _home) = start().await;
    for request in [post("k"), get("/elsewhere")] {
        let request = request
            .header("Connection", "keep-alive, X-Hop")
            .header("Keep-Alive", "timeout=5")
            .header("X-Hop", "1")
            .header("TE", "trailers")
            .header("Proxy-Authorization", "Basic x")
            .header("Upgrade", "h2c");
        gateway.ask(&request).await;
        let received = upstream.last();
        for name in ["keep-alive", "x-hop", "te", "proxy-authorization", "upgrade"] {
            assert_eq!(received.header(name), None, "{name}");
        }
    }
    upstream.now(|_| answer("200 OK", "Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: x\r\n", ""));
    for request in [post("other"), get("/elsewhere")] {
        let answer = gateway.ask(&request).await;
        assert!(answer.lines("x-hop").is_empty() && answer.lines("keep-alive").is_empty());
    }
}

#[tokio::test]
async fn a_client_that_is_no_trusted_proxy_cannot_say_where_it_comes_from() {
    let (upstream, gateway, home) = start().await;
    let claims = get("/elsewhere")
        .header("X-Forwarded-For", "10.0.0.1")
        .header("X-Forwarded-Proto", "https")
        .header("X-Forwarded-Host", "evil.test");
    gateway.ask(&claims).await;
    let received = upstream.last();
    assert_eq!(received.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(received.header("x-forwarded-proto"), Some("http"));
    assert_eq!(received.header("x-forwarded-host"), Some("api.test"));
    assert!(received.header("via").unwrap().contains("oncegate"));
    drop(gateway);

    let config = Config::to(upstream.address).listen("trusted_proxies: [127.0.0.0/8]");
    let gateway = home.start(&config).await;
    gateway.ask(&claims).await;
    let received = upstream.last();
    assert_eq!(received.header("x-forwarded-for"), Some("10.0.0.1, 127.0.0.1"));
    assert_eq!(received.header("x-forwarded-proto"), Some("https, http"));
}

#[tokio::test]
async fn a_client_that_waits_for_100_continue_is_told_and_the_upstream_never_asked() {
    let (upstream, gateway, _home) = start().await;
    for (request, status) in [(post("k"), 201), (post("k").to("/elsewhere"), 201)] {
        let request = request.header("Expect", "100-continue");
        let mut client = Client::connect(gateway.address).await;
        client.send_bytes(&request.head()).await;
        assert_eq!(client.head().await.unwrap().status, 100);
        client.send_bytes(b"amount=5").await;
        assert_eq!(client.answer().await.status, status);
        let received = upstream.last();
        assert_eq!((received.header("expect"), &*received.body), (None, &b"amount=5"[..]));
    }
    assert_eq!(upstream.count(), 2);
}

#[tokio::test]
async fn a_body_in_chunks_is_compared_and_forwarded_by_its_bytes() {
    let (upstream, gateway, _home) = start().await;
    let head = post("k").body("").header("Transfer-Encoding", "chunked");
    for chunks in
        ["6\r\namount\r\n2\r\n=5\r\n0\r\n\r\n", "8;x=y\r\namount=5\r\n0\r\nX-Trailer: 1\r\n\r\n"]
    {
        let mut client = Client::connect(gateway.address).await;
        client.send(&head).await;
        client.send_bytes(chunks.as_bytes()).await;
        assert_eq!(client.answer().await.status, 201);
    }
    assert!(gateway.ask(&post("k")).await.is_replay());
    assert_eq!((upstream.count(), &*upstream.last().body), (1, &b"amount=5"[..]));
}

#[tokio::test]
async fn requests_in_a_row_on_one_connection_are_answered_in_their_order() {
    let (upstream, gateway, _home) = start().await;
    let mut client = Client::connect(gateway.address).await;
    let mut bytes = Vec::new();
    for key in ["a", "b", "a"] {
        bytes.extend_from_slice(&post(key).bytes());
    }
    client.send_bytes(&bytes).await;
    for (key, is_replay) in [("a", false), ("b", false), ("a", true)] {
        let answer = client.answer().await;
        assert_eq!(answer.is_replay(), is_replay);
        assert!(String::from_utf8_lossy(&answer.body).ends_with(key));
    }
    assert_eq!(upstream.count(), 2);
}

#[tokio::test]
async fn an_http_1_0_client_gets_its_answer_and_the_end_of_its_connection() {
    let (upstream, gateway, _home) = start().await;
    let mut client = Client::connect(gateway.address).await;
    let request = "POST /v1/charges HTTP/1.0\r\nX-Api-Key: a\r\nIdempotency-Key: k\r\n\
                   Content-Length: 2\r\n\r\nok";
    client.send_bytes(request.as_bytes()).await;
    assert_eq!(client.answer().await.status, 201);
    assert!(client.is_closed().await);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_plain_route_lets_a_connection_become_a_websocket() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                  Upgrade: websocket\r\n\r\nhello";
    let upstream = Upstream::always(vec![Step::Write(switch.into()), Step::Wait, Step::Close]);
    let (gateway, _home) = Gateway::start(&Config::to(upstream.address)).await;
    let request = get("/socket").header("Connection", "Upgrade").header("Upgrade", "websocket");
    let mut client = Client::connect(gateway.address).await;
    client.send(&request).await;
    let switched = client.answer_to(&request).await;
    assert_eq!((switched.status, switched.header("upgrade")), (101, Some("websocket")));
    assert_eq!(client.exactly(5).await.unwrap(), b"hello");
    upstream.go();
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_body_whose_chunks_are_malformed_is_refused_and_touches_no_key() {
    let (upstream, gateway, _home) = start().await;
    let head = post("k").body("").header("Transfer-Encoding", "chunked");
    for chunks in ["6\r\namount\r\nzz\r\n", "6\r\namountXX", "-1\r\n\r\n"] {
        let mut client = Client::connect(gateway.address).await;
        client.send(&head).await;
        client.send_bytes(chunks.as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad-request"), "{chunks}");
        assert!(client.is_closed().await);
    }
    assert_eq!(upstream.count(), 0);
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
}

/// A GET below a keyed route's path is proxied as on a plain route.
#[tokio::test]
async fn an_unkeyed_request_of_a_keyed_route_is_proxied_like_any() {
    let lines = "Connection: X-Hop\r\nX-Hop: 1\r\nIdempotency-Error-Source: gateway\r\n\
                 Idempotency-Expires: never\r\n";
    let upstream = Upstream::always(answer("200 OK", lines, "ok"));
    let (gateway, home) = Gateway::start(&Config::to(upstream.address)).await;
    let answered = gateway.ask(&get("/v1/charges/x")).await;
    assert_eq!((answered.status, &*answered.body), (200, &b"ok"[..]));
    for name in ["x-hop", "idempotency-error-source", "idempotency-expires"] {
        assert!(answered.lines(name).is_empty(), "{name}");
    }
    drop(gateway);

    let holding = Upstream::holding();
    let gateway = home.start(&Config::to(holding.address).limits("max_in_flight: 1")).await;
    let mut first = Client::connect(gateway.address).await;
    first.send(&get("/v1/charges/x")).await;
    holding.received(1).await;
    assert_eq!(gateway.ask(&get("/v1/charges/y")).await.code(), "overloaded");
    holding.go();
    assert_eq!(first.answer().await.status, 201);
}

#[tokio::test]
async fn an_unkeyed_body_of_a_keyed_route_may_not_pause_for_long() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).listen("body_timeout: 200ms");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    let head = "PUT /v1/charges/x HTTP/1.1\r\nHost: api.test\r\nContent-Length: 9\r\n\r\npart";
    client.send_bytes(head.as_bytes()).await;
    let answered = client.answer().await;
    assert_eq!((answered.status, answered.code().as_str()), (408, "request-timeout"));
}

/// What the gateway adds for the upstream is not the client's: it names no caller.
#[tokio::test]
async fn a_scope_sees_what_the_client_sent_and_not_what_the_gateway_adds() {
    let upstream = Upstream::start();
    let mut config = Config::to(upstream.address).listen("trusted_proxies: [127.0.0.0/8]");
    config.rules = "scope: [X-Forwarded-For]".into();
    let (gateway, _home) = Gateway::start(&config).await;
    let missing = gateway.ask(&post("k")).await;
    assert_eq!((missing.status, missing.code().as_str()), (400, "scope-missing"));
    for is_replay in [false, true] {
        let answered = gateway.ask(&post("k").header("X-Forwarded-For", "10.0.0.1")).await;
        assert_eq!(answered.is_replay(), is_replay);
    }
    assert_eq!(upstream.last().header("x-forwarded-for"), Some("10.0.0.1, 127.0.0.1"));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn an_absolute_target_names_the_only_host() {
    let (upstream, gateway, _home) = start().await;
    let mut client = Client::connect(gateway.address).await;
    let request = "GET http://real.test/x HTTP/1.1\r\nHost: other.test\r\n\r\n";
    client.send_bytes(request.as_bytes()).await;
    assert_eq!(client.answer().await.status, 201);
    let received = upstream.last();
    assert_eq!(received.header("host"), Some("real.test"));
    assert_eq!(received.header("x-forwarded-host"), Some("real.test"));
    assert_eq!(received.target, "/x");
}
