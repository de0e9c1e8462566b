//! Connections are used again, and replaced only while not one byte of the request was written.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body::SizeHint;
use tokio::sync::{Barrier, Notify, Semaphore};

use super::support::*;
use crate::gateway::proxy::{Upstream, UpstreamError};

/// Answers one request on each connection and closes it; tells when it is closed.
async fn closing() -> (std::net::SocketAddr, Received, Arc<Notify>) {
    let closed = Arc::new(Notify::new());
    let tell = Arc::clone(&closed);
    let (address, received) = upstream(move |mut connection: Accepted| {
        let tell = Arc::clone(&tell);
        async move {
            connection.request().await;
            connection.ok("1").await;
            drop(connection);
            tell.notify_one();
        }
    })
    .await;
    (address, received, closed)
}

#[tokio::test]
async fn a_connection_is_used_again() {
    within(async {
        let (address, received) = upstream(echo).await;
        let upstream = to(address);
        for number in 1..=5 {
            let (request, _) = keyed("/charges", "x");
            assert_eq!(text(upstream.forward(request).await).await.unwrap(), number.to_string());
        }
        assert_eq!((received.count(), received.connections()), (5, 1));
    })
    .await;
}

// R16: a reused connection that is dead before the first byte is replaced; the upstream sees each
// request once.
#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_replaced_before_the_first_byte() {
    within(async {
        let (address, received, closed) = closing().await;
        let upstream = to(address);
        for sent in 1..=20 {
            let (request, gate) = keyed("/charges", "x");
            text(upstream.forward(request).await).await.unwrap();
            assert!(gate.is_passed());
            closed.notified().await;
            assert_eq!((received.count(), received.connections()), (sent, sent));
        }
    })
    .await;
}

// R16, for a body that streams: it is not touched before the first byte was written.
#[tokio::test]
async fn a_stream_survives_the_replacement_of_a_dead_connection() {
    within(async {
        let (address, received, closed) = closing().await;
        let upstream = to(address);
        for sent in 1..=20 {
            let (request, pieces) = streamed(SizeHint::with_exact(10));
            let feeding = async {
                pieces.send(Ok(Bytes::from_static(b"first"))).await.unwrap();
                pieces.send(Ok(Bytes::from_static(b"secnd"))).await.unwrap();
            };
            let (answer, ()) = tokio::join!(upstream.forward(request), feeding);
            text(answer).await.unwrap();
            closed.notified().await;
            assert_eq!(received.count(), sent);
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_with_bytes_that_nobody_asked_for_is_not_used() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.ok("1").await;
            connection.write("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged").await;
            assert_eq!(connection.request().await, None);
        })
        .await;
        let upstream = to(address);
        for _ in 0..5 {
            match text(upstream.forward(get("/")).await).await {
                Ok(body) => assert_eq!(body, "1"),
                // The surplus came in the same read as the answer.
                Err(error) => assert!(matches!(error, UpstreamError::Interrupted(_)), "{error:?}"),
            }
        }
        assert_eq!(received.connections(), 5);
    })
    .await;
}

// R15, R16, R17: once a byte was written nothing is sent again, neither on this endpoint nor on
// another one.
#[tokio::test]
async fn a_request_that_a_reused_connection_swallowed_is_not_sent_again() {
    within(async {
        let script = |mut connection: Accepted| async move {
            connection.request().await;
            connection.ok("1").await;
            connection.request().await;
        };
        let (first, one) = upstream(script).await;
        let (second, two) = upstream(script).await;
        let upstream = Upstream::new(settings(&[first, second]));
        for _ in 0..2 {
            text(upstream.forward(keyed("/", "x").0).await).await.unwrap();
        }
        assert_eq!((one.count(), two.count()), (1, 1));

        let (request, gate) = keyed("/", "x");
        let error = upstream.forward(request).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Interrupted(_)), "{error:?}");
        assert!(gate.is_passed());
        assert_eq!(one.count() + two.count(), 3);
        assert_eq!(one.connections() + two.connections(), 2);
    })
    .await;
}

// R17: not even when the fresh connection is closed without an answer.
#[tokio::test]
async fn a_request_that_a_fresh_connection_swallowed_is_not_sent_again() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
        })
        .await;
        for request in [keyed("/", "x").0, get("/")] {
            let error = to(address).forward(request).await.unwrap_err();
            assert!(matches!(error, UpstreamError::Interrupted(_)), "{error:?}");
        }
        assert_eq!((received.count(), received.connections()), (2, 2));
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_closed_and_not_used() {
    within(async {
        let gone = Arc::new(Notify::new());
        let tell = Arc::clone(&gone);
        let (address, received) = upstream(move |mut connection: Accepted| {
            let tell = Arc::clone(&tell);
            async move {
                while connection.request().await.is_some() {
                    connection.ok("1").await;
                }
                tell.notify_one();
            }
        })
        .await;
        let mut settings = settings(&[address]);
        settings.idle_timeout = Duration::from_millis(20);
        let upstream = Upstream::new(settings);
        for sent in 1..=3 {
            text(upstream.forward(get("/")).await).await.unwrap();
            // The sweeper closes it without another request.
            gone.notified().await;
            assert_eq!(received.connections(), sent);
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_not_used_though_it_is_still_open() {
    within(async {
        let (address, received) = upstream(echo).await;
        let mut settings = settings(&[address]);
        // The sweeper had no time to run: nothing waits between answer and next request.
        settings.idle_timeout = Duration::ZERO;
        let upstream = Upstream::new(settings);
        for sent in 1..=3 {
            text(upstream.forward(get("/")).await).await.unwrap();
            assert_eq!(received.connections(), sent);
        }
    })
    .await;
}

#[tokio::test]
async fn no_more_idle_connections_are_kept_than_allowed() {
    within(async {
        let gone = Arc::new(Semaphore::new(0));
        let tell = Arc::clone(&gone);
        let all_here = Arc::new(Barrier::new(4));
        let (address, received) = upstream(move |mut connection: Accepted| {
            let (tell, all_here) = (Arc::clone(&tell), Arc::clone(&all_here));
            async move {
                connection.request().await;
                all_here.wait().await;
                connection.ok("1").await;
                connection.request().await;
                tell.add_permits(1);
            }
        })
        .await;
        let mut settings = settings(&[address]);
        settings.max_idle = 1;
        let upstream = Upstream::new(settings);
        let one = || Box::pin(async { text(upstream.forward(get("/")).await).await.unwrap() });
        tokio::join!(one(), one(), one(), one());
        gone.acquire_many(3).await.unwrap().forget();
        assert_eq!((received.connections(), gone.available_permits()), (4, 0));
    })
    .await;
}
