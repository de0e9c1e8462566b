//! What is said when there is no answer.

use std::{sync::Arc, time::Duration};

use http_body_util::BodyExt;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use super::support::*;
use crate::{
    gateway::proxy::{Upstream, UpstreamError},
    ledger::Gate,
};

/// The error of a keyed request to an upstream that answers with `answer` and closes.
async fn error_of(answer: &'static [u8]) -> UpstreamError {
    let (address, received) = upstream(move |mut connection: Accepted| async move {
        connection.request().await;
        tokio::io::AsyncWriteExt::write_all(&mut connection.stream, answer).await.unwrap();
    })
    .await;
    let (request, gate) = keyed("/", "x");
    let error = text(to(address).forward(request).await).await.unwrap_err();
    assert!(gate.is_passed());
    assert_eq!(received.count(), 1);
    error
}

// R8, R18: what was sent may have run, whatever the answer looks like.
#[tokio::test]
async fn a_cut_over_long_or_malformed_answer_is_an_interruption() {
    let answers: [&[u8]; 10] = [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n12345",
        b"HTTP/1.1 204 No\r\n\r\n12345",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n123",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n12",
        b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    ];
    for answer in answers {
        let error = within(error_of(answer)).await;
        let answer = String::from_utf8_lossy(answer);
        assert!(matches!(error, UpstreamError::Interrupted(_)), "{answer:?}: {error:?}");
        assert!(error.may_have_run());
    }
}

#[tokio::test]
async fn a_surplus_is_seen_before_the_answer_is_given_or_at_its_end() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n123").await;
        })
        .await;
        let error = to(address).forward(get("/")).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Interrupted(_)), "{error:?}");
    })
    .await;
    within(async {
        let (go, gone) = oneshot::channel();
        let gone = std::sync::Mutex::new(Some(gone));
        let (address, _) = upstream(move |mut connection: Accepted| {
            let gone = gone.lock().unwrap().take().unwrap();
            async move {
                connection.request().await;
                connection.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1").await;
                gone.await.unwrap();
                connection.write("23").await;
            }
        })
        .await;
        let answer = to(address).forward(get("/")).await;
        go.send(()).unwrap();
        let error = text(answer).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Interrupted(_)), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_keyed_call_that_was_answered_ends_with_a_regular_close() {
    within(async {
        let (told, ended) = oneshot::channel();
        let told = std::sync::Mutex::new(Some(told));
        let (address, _) = upstream(move |mut connection: Accepted| {
            let told = told.lock().unwrap().take().unwrap();
            async move {
                connection.request().await;
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\n";
                connection.write(head).await;
                connection.write("done").await;
                told.send(connection.ended().await).unwrap();
            }
        })
        .await;
        let (request, _) = keyed("/", "x");
        assert_eq!(text(to(address).forward(request).await).await.unwrap(), "done");
        ended.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_answer_with_too_large_a_head_is_an_interruption() {
    let head: &'static str = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(20_000)).leak();
    let error = within(error_of(head.as_bytes())).await;
    assert!(matches!(error, UpstreamError::Interrupted(_)), "{error:?}");
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_is_whole() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.write("HTTP/1.0 200 OK\r\n\r\nto the end").await;
        })
        .await;
        assert_eq!(text(to(address).forward(get("/")).await).await.unwrap(), "to the end");
    })
    .await;
}

#[tokio::test]
async fn a_reset_within_the_answer_is_an_interruption() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345").await;
            connection.reset();
        })
        .await;
        let error = text(to(address).forward(keyed("/", "x").0).await).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Interrupted(_)), "{error:?}");
    })
    .await;
}

// R18: a refused connection is proof that nothing was sent; nothing else here is.
#[tokio::test]
async fn a_refused_connection_sends_nothing() {
    within(async {
        let address = refusing().await;
        let (request, gate) = keyed("/", "x");
        let error = to(address).forward(request).await.unwrap_err();
        assert!(matches!(error, UpstreamError::NotSent(_)), "{error:?}");
        assert!(!error.may_have_run());
        assert!(!gate.is_passed());
    })
    .await;
}

#[tokio::test]
async fn a_name_without_an_address_sends_nothing() {
    within(async {
        let mut settings = settings(&["127.0.0.1:1".parse().unwrap()]);
        settings.endpoints[0].host = "nowhere.invalid".to_owned();
        let (request, gate) = keyed("/", "x");
        let error = Upstream::new(settings).forward(request).await.unwrap_err();
        assert!(matches!(error, UpstreamError::NotSent(_)), "{error:?}");
        assert!(!gate.is_passed());
    })
    .await;
}

#[tokio::test]
async fn a_lease_that_is_over_lets_nothing_out() {
    within(async {
        let (address, received) = upstream(echo).await;
        let upstream = to(address);
        // Over a fresh connection, and over one that was used before.
        for _ in 0..2 {
            let (request, gate) = keyed_with("/", "x", Gate::new(Some(Arc::new(Over))));
            let error = upstream.forward(request).await.unwrap_err();
            assert!(matches!(error, UpstreamError::Lapsed), "{error:?}");
            assert!(!gate.is_passed());
            text(upstream.forward(get("/")).await).await.unwrap();
        }
        assert!(received.heads().iter().all(|head| head.starts_with("GET")));
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_in_time_may_have_run_the_request() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.ended().await.unwrap_err();
        })
        .await;
        let mut settings = settings(&[address]);
        settings.request_timeout = Duration::from_millis(300);
        let upstream = Upstream::new(settings);
        let started = Instant::now();
        let (request, gate) = keyed("/", "x");
        let error = upstream.forward(request).await.unwrap_err();
        assert!(matches!(error, UpstreamError::TimedOut), "{error:?}");
        assert!(gate.is_passed());
        assert!(started.elapsed() < Duration::from_millis(550), "{:?}", started.elapsed());
        let error = upstream.forward(get("/")).await.unwrap_err();
        assert!(matches!(error, UpstreamError::TimedOut), "{error:?}");
        assert!(started.elapsed() < Duration::from_millis(850), "{:?}", started.elapsed());
        assert_eq!(received.count(), 2);
    })
    .await;
}

#[tokio::test]
async fn the_time_of_a_keyed_request_ends_with_the_last_byte_of_the_answer() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            // A piece every now and then renews nothing.
            let mut pause = tokio::time::interval(Duration::from_millis(10));
            while connection.stream.try_write(b"1\r\nx\r\n").is_ok() {
                pause.tick().await;
            }
        })
        .await;
        let mut settings = settings(&[address]);
        settings.request_timeout = Duration::from_millis(200);
        settings.stream_timeout = Duration::from_millis(150);
        let upstream = Upstream::new(settings);
        let answer = upstream.forward(keyed("/", "x").0).await;
        assert!(matches!(text(answer).await, Err(UpstreamError::TimedOut)));
        // Without a key only a silence of `stream_timeout` ends it.
        let mut body = upstream.forward(get("/")).await.unwrap().into_body();
        let longer = timeout(Duration::from_millis(500), async {
            while body.frame().await.unwrap().is_ok() {}
        });
        longer.await.unwrap_err();
    })
    .await;
}

#[tokio::test]
async fn a_silence_within_an_unkeyed_answer_ends_it() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123").await;
            connection.ended().await.unwrap();
        })
        .await;
        let mut settings = settings(&[address]);
        settings.stream_timeout = Duration::from_millis(50);
        let answer = Upstream::new(settings).forward(get("/")).await;
        assert!(matches!(text(answer).await, Err(UpstreamError::TimedOut)));
    })
    .await;
}

#[tokio::test]
async fn a_keyed_call_that_is_dropped_is_cut_off_with_a_reset() {
    within(async {
        let (told, ended) = oneshot::channel();
        let told = std::sync::Mutex::new(Some(told));
        let (arrived, arrival) = oneshot::channel();
        let arrived = std::sync::Mutex::new(Some(arrived));
        let (address, _) = upstream(move |mut connection: Accepted| {
            let told = told.lock().unwrap().take().unwrap();
            let arrived = arrived.lock().unwrap().take().unwrap();
            async move {
                connection.request().await;
                arrived.send(()).unwrap();
                told.send(connection.ended().await).unwrap();
            }
        })
        .await;
        let upstream = to(address);
        let (request, gate) = keyed("/", "x");
        tokio::select! {
            answer = upstream.forward(request) => panic!("{answer:?}"),
            arrived = arrival => arrived.unwrap(),
        }
        assert!(gate.is_passed());
        let error = ended.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    })
    .await;
}
