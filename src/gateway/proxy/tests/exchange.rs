//! What goes out, and what comes back.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Version};
use http_body::Body;
use http_body_util::BodyExt;

use super::support::*;
use crate::gateway::proxy::RequestBody;

#[tokio::test]
async fn a_request_goes_out_in_origin_form_with_its_own_path_query_and_host() {
    within(async {
        let (address, received) = upstream(echo).await;
        let upstream = to(address);
        let paths =
            ["/a%2Fb/../c;x=1?q=%20&q=", "/?", "/", "http://other.example:81/p?q", "http://o"];
        for path in paths {
            let mut request = get(path);
            *request.version_mut() = Version::HTTP_10;
            text(upstream.forward(request).await).await.unwrap();
        }
        let lines: Vec<_> =
            received.heads().iter().map(|head| head.lines().next().unwrap().to_owned()).collect();
        let expected = [
            "GET /a%2Fb/../c;x=1?q=%20&q= HTTP/1.1",
            "GET /? HTTP/1.1",
            "GET / HTTP/1.1",
            "GET /p?q HTTP/1.1",
            "GET / HTTP/1.1",
        ];
        assert_eq!(lines, expected);
        assert!(received.heads()[0].contains("host: api.example.com\r\n"));
        assert!(received.heads()[3].contains("host: other.example:81\r\n"));
    })
    .await;
}

#[tokio::test]
async fn a_request_without_host_gets_an_empty_one() {
    within(async {
        let (address, received) = upstream(echo).await;
        let mut request = get("/");
        request.headers_mut().remove("host");
        text(to(address).forward(request).await).await.unwrap();
        assert!(received.heads()[0].contains("host: \r\n"), "{:?}", received.heads());
    })
    .await;
}

#[tokio::test]
async fn a_keyed_body_goes_out_with_its_length_whatever_the_client_said() {
    within(async {
        let (address, received) = upstream(echo).await;
        let upstream = to(address);
        let (mut request, gate) = keyed("/charges", "amount=1");
        request.headers_mut().insert("content-length", "3".parse().unwrap());
        request.headers_mut().insert("transfer-encoding", "chunked".parse().unwrap());
        request.headers_mut().insert("expect", "100-continue".parse().unwrap());
        assert_eq!(text(upstream.forward(request).await).await.unwrap(), "1");
        assert!(gate.is_passed());
        let head = &received.heads()[0];
        assert!(head.contains("content-length: 8\r\n"), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
        assert!(!head.contains("expect"), "{head}");
    })
    .await;
}

#[tokio::test]
async fn a_request_without_a_body_gets_no_framing() {
    within(async {
        let (address, received) = upstream(echo).await;
        let upstream = to(address);
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let mut request = get("/");
            *request.method_mut() = method;
            text(upstream.forward(request).await).await.unwrap();
        }
        for head in received.heads() {
            assert!(!head.contains("content-length"), "{head}");
            assert!(!head.contains("transfer-encoding"), "{head}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_answer_to_head_keeps_its_length_and_has_no_body() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            while connection.head().await.is_some() {
                connection.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
            }
        })
        .await;
        let upstream = to(address);
        for _ in 0..3 {
            let mut request = get("/");
            *request.method_mut() = Method::HEAD;
            let answer = upstream.forward(request).await.unwrap();
            assert_eq!(answer.headers()["content-length"], "1000");
            assert!(answer.body().is_end_stream());
        }
        assert_eq!((received.count(), received.connections()), (3, 1));
    })
    .await;
}

#[tokio::test]
async fn answers_without_content_end_with_their_head() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            while let Some(head) = connection.head().await {
                let status = head.split(['/', ' ']).nth(2).unwrap().to_owned();
                connection.write(&format!("HTTP/1.1 {status} Fine\r\netag: \"1\"\r\n\r\n")).await;
            }
        })
        .await;
        let upstream = to(address);
        for status in [204_u16, 304, 204] {
            let answer = upstream.forward(get(&format!("/{status}"))).await.unwrap();
            assert_eq!(answer.status(), StatusCode::from_u16(status).unwrap());
            assert_eq!(text(Ok(answer)).await.unwrap(), "");
        }
        assert_eq!(received.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn interim_answers_are_not_the_answer() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            while connection.request().await.is_some() {
                connection.write("HTTP/1.1 100 Continue\r\n\r\n").await;
                connection.write("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n").await;
                connection.ok("final").await;
            }
        })
        .await;
        let answer = to(address).forward(keyed("/", "x").0).await.unwrap();
        assert!(!answer.headers().contains_key("link"));
        assert_eq!(text(Ok(answer)).await.unwrap(), "final");
    })
    .await;
}

#[tokio::test]
async fn a_chunked_answer_arrives_whole_with_its_trailers_and_the_connection_is_used_again() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            while connection.request().await.is_some() {
                connection.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
                connection.write("3\r\none\r\n").await;
                connection.write("3\r\ntwo\r\n0\r\nx-sum: 7\r\n\r\n").await;
            }
        })
        .await;
        let upstream = to(address);
        for _ in 0..3 {
            let answer = upstream.forward(get("/")).await.unwrap();
            let whole = answer.into_body().collect().await.unwrap();
            assert_eq!(whole.trailers().unwrap()["x-sum"], "7");
            assert_eq!(whole.to_bytes(), "onetwo");
        }
        assert_eq!((received.count(), received.connections()), (3, 1));
    })
    .await;
}

#[tokio::test]
async fn repeated_lines_and_values_that_are_no_text_stay_as_they_are() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            let head = b"HTTP/1.1 201 Made\r\nx-a: 1\r\nX-A: \xff\xfe\r\ncontent-length: 0\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut connection.stream, head).await.unwrap();
        })
        .await;
        let answer = to(address).forward(get("/")).await.unwrap();
        let lines: Vec<_> =
            answer.headers().get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(lines, [b"1".as_slice(), b"\xff\xfe"]);
    })
    .await;
}

#[tokio::test]
async fn a_small_stream_that_is_here_already_leaves_in_one_piece() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            let mut first = vec![0; 4096];
            let read = tokio::io::AsyncReadExt::read(&mut connection.stream, &mut first);
            let length = read.await.unwrap();
            let is_whole = first[..length].ends_with(b"\r\n\r\nhello");
            connection.ok(if is_whole { "one piece" } else { "pieces" }).await;
        })
        .await;
        let body = RequestBody::stream(http_body_util::Full::new(Bytes::from_static(b"hello")));
        let request = Request::post("/").header("host", "a").body(body).unwrap();
        assert_eq!(text(to(address).forward(request).await).await.unwrap(), "one piece");
    })
    .await;
}
