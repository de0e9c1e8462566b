//! What is not HTTP/1.1, or could be read in two ways, reaches nobody.

use tokio::io::AsyncWriteExt;

use super::support::{Running, read_until, settings, start};

fn text(answer: &[u8]) -> String {
    String::from_utf8(answer.to_vec()).unwrap()
}

async fn assert_refused(running: &Running, request: impl AsRef<[u8]>) {
    let request = request.as_ref();
    let answer = running.exchange(request).await;
    let shown = String::from_utf8_lossy(&request[..request.len().min(200)]).into_owned();
    assert_eq!(answer, text(&settings().canned.bad_request), "{shown:?}");
}

#[tokio::test]
async fn malformed_requests_get_a_problem_and_the_end_and_reach_no_service() {
    let running = start(&settings());
    let requests: &[&[u8]] = &[
        b"complete nonsense\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
        b"G@T / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Folded: a\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Null: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Return: a\rb\r\n\r\n",
        // The start of a TLS handshake.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        // HTTP/2 with prior knowledge.
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0",
    ];
    for request in requests {
        assert_refused(&running, request).await;
    }
    assert_eq!(running.stop().await, []);
}

#[tokio::test]
async fn a_body_whose_length_could_be_read_in_two_ways_reaches_no_service() {
    let running = start(&settings());
    for framing in [
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3, 4\r\n",
        "Content-Length: +3\r\n",
        "Content-Length: -3\r\n",
        "Content-Length: 0x3\r\n",
        "Content-Length: 3 3\r\n",
        "Content-Length:\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\nContent-Length: 3\r\n",
    ] {
        let head = format!("POST /x HTTP/1.1\r\nHost: x\r\n{framing}\r\n");
        assert_refused(&running, head + "3\r\nabc\r\n0\r\n\r\n").await;
    }
    assert_refused(
        &running,
        "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    )
    .await;
    assert_eq!(running.stop().await, []);
}

/// RFC 9112 section 6.1 lets the coding win, if the connection closes after the answer: whatever a
/// length would have made of the rest, it is no request.
#[tokio::test]
async fn of_a_coding_and_a_length_the_coding_wins_and_nothing_is_read_after_it() {
    for framing in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
    ] {
        let running = start(&settings());
        let smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
        let request =
            format!("POST /x HTTP/1.1\r\nHost: x\r\n{framing}\r\n3\r\nabc\r\n0\r\n\r\n{smuggled}");

        let answer = running.exchange(request).await;

        assert!(answer.ends_with("first /x abc;"), "{answer}");
        let seen: Vec<_> = running.stop().await.into_iter().map(|seen| seen.target).collect();
        assert_eq!(seen, ["/x"], "{framing}");
    }
}

#[tokio::test]
async fn a_chunk_that_is_none_breaks_the_body_off_and_nothing_is_read_after_it() {
    for chunk in [
        "x\r\nabc\r\n",
        "3\r\nabcdef\r\n",
        "3 3\r\nabc\r\n",
        "-3\r\nabc\r\n",
        "fffffffffffffffff\r\nabc\r\n",
        "3\rXabc\r\n",
    ] {
        let running = start(&settings());
        let smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
        let request = format!(
            "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{smuggled}"
        );

        let answer = running.exchange(request).await;

        assert!(answer.ends_with("broken body"), "{chunk:?}: {answer}");
        let seen: Vec<_> = running.stop().await;
        assert_eq!(seen.len(), 1, "{chunk:?}: {seen:?}");
        assert_eq!(seen[0].body, None);
    }
}

#[tokio::test]
async fn a_head_over_the_limit_gets_a_problem_of_its_own() {
    let running = start(&settings());
    let long = "x".repeat(32 * 1024);
    let lines = "X-Line: x\r\n".repeat(101);
    for request in [
        format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {long}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{lines}\r\n"),
        // Never ends, so it is the limit that ends it.
        format!("GET / HTTP/1.1\r\nX-Long: {long}"),
        format!("GET /{long}"),
    ] {
        let answer = running.exchange(&request).await;
        assert_eq!(answer, text(&settings().canned.headers_too_large), "{request:.30}");
    }
    assert_eq!(running.stop().await, []);
}

#[tokio::test]
async fn a_head_at_the_limit_is_served() {
    let running = start(&settings());
    let head =
        |filler: &str| format!("GET / HTTP/1.1\r\nConnection: close\r\nX-Long: {filler}\r\n\r\n");
    let room = settings().max_header_size - head("").len();

    let answer = running.exchange(head(&"x".repeat(room))).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");

    let answer = running.exchange(head(&"x".repeat(room + 1))).await;
    assert_eq!(answer, text(&settings().canned.headers_too_large));
}

#[tokio::test]
async fn a_malformed_request_after_a_good_one_is_refused_and_the_good_one_answered() {
    let running = start(&settings());
    // Both at once.
    let answers = running.exchange("GET /good HTTP/1.1\r\nHost: x\r\n\r\nbad\r\n\r\n").await;
    let refusal = text(&settings().canned.bad_request);
    let answer = answers.strip_suffix(&refusal).unwrap_or_else(|| panic!("{answers}"));
    assert!(answer.ends_with("first /good ;"), "{answer}");

    // One after the other.
    let mut stream = running.connect().await;
    stream.write_all(b"GET /good HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    read_until(&mut stream, ";").await;
    stream.write_all(b"bad\r\n\r\n").await.unwrap();
    assert_eq!(super::support::read_to_end(&mut stream).await, refusal);
}
