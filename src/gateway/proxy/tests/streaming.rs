//! Bodies that stream, and switched protocols.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::{io::AsyncWriteExt, sync::oneshot, time::timeout};

use super::support::*;
use crate::{
    BoxError,
    gateway::proxy::{RequestBody, Upstream, UpstreamError},
};

const PIECE: usize = 64 * 1024;

/// Never ends, and counts what was taken.
struct Endless {
    piece: Bytes,
    taken: Arc<AtomicUsize>,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.taken.fetch_add(PIECE, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
    }
}

#[tokio::test]
async fn a_stream_of_unknown_length_goes_out_in_chunks() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            connection.head().await;
            let body = connection.until(b"0\r\n\r\n").await;
            connection.ok(&format!("{} bytes", body.len())).await;
        })
        .await;
        let upstream = to(address);
        let (request, pieces) = streamed(SizeHint::new());
        let feeding = async move {
            pieces.send(Ok(Bytes::from_static(b"one"))).await.unwrap();
            pieces.send(Ok(Bytes::from_static(b"two"))).await.unwrap();
        };
        let (answer, ()) = tokio::join!(upstream.forward(request), feeding);
        assert_eq!(text(answer).await.unwrap(), "21 bytes");
        assert!(received.heads()[0].contains("transfer-encoding: chunked\r\n"));
        assert!(!received.heads()[0].contains("content-length"));
    })
    .await;
}

#[tokio::test]
async fn a_get_with_a_stream_of_unknown_length_does_not_lose_it() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.head().await;
            connection.until(b"0\r\n\r\n").await;
            connection.ok("whole").await;
        })
        .await;
        let (mut request, pieces) = streamed(SizeHint::new());
        *request.method_mut() = http::Method::GET;
        let feeding = async move { pieces.send(Ok(Bytes::from_static(b"x"))).await.unwrap() };
        let upstream = to(address);
        let (answer, ()) = tokio::join!(upstream.forward(request), feeding);
        assert_eq!(text(answer).await.unwrap(), "whole");
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_does_not_read_is_not_read_ahead_of() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.head().await;
            std::future::pending::<()>().await;
        })
        .await;
        let mut settings = settings(&[address]);
        settings.request_timeout = Duration::from_millis(200);
        let taken = Arc::new(AtomicUsize::new(0));
        let piece = Bytes::from(vec![0; PIECE]);
        let body = RequestBody::stream(Endless { piece, taken: Arc::clone(&taken) });
        let request = Request::post("/").header("host", "a").body(body).unwrap();
        let error = Upstream::new(settings).forward(request).await.unwrap_err();
        assert!(matches!(error, UpstreamError::TimedOut), "{error:?}");
        // What the kernel's buffers hold, and no more.
        assert!(taken.load(Ordering::SeqCst) < 64 * 1024 * 1024);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_upstream_back() {
    within(async {
        let (stalled, at) = oneshot::channel();
        let stalled = std::sync::Mutex::new(Some(stalled));
        let (address, _) = upstream(move |mut connection: Accepted| {
            let stalled = stalled.lock().unwrap().take().unwrap();
            async move {
                connection.request().await;
                connection.write("HTTP/1.1 200 OK\r\n\r\n").await;
                let mut sent = 0_usize;
                let piece = vec![0; PIECE];
                let wait = Duration::from_millis(200);
                while timeout(wait, connection.stream.write_all(&piece)).await.is_ok() {
                    sent += PIECE;
                }
                stalled.send(sent).unwrap();
            }
        })
        .await;
        let mut body = to(address).forward(get("/")).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        assert!(at.await.unwrap() < 64 * 1024 * 1024);
    })
    .await;
}

#[tokio::test]
async fn an_early_answer_is_passed_on_and_its_connection_is_not_used_again() {
    within(async {
        let (address, received) = upstream(|mut connection: Accepted| async move {
            let number = connection.number;
            connection.head().await;
            connection.ok(&number.to_string()).await;
            drop(connection.ended().await);
        })
        .await;
        let upstream = to(address);
        for number in 1..=3 {
            let (request, pieces) = streamed(SizeHint::with_exact(1000));
            pieces.send(Ok(Bytes::from_static(b"only a part"))).await.unwrap();
            let answer = upstream.forward(request).await;
            assert_eq!(text(answer).await.unwrap(), number.to_string());
            drop(pieces);
        }
        assert_eq!((received.count(), received.connections()), (3, 3));
    })
    .await;
}

#[tokio::test]
async fn a_clients_body_that_breaks_off_is_told_apart_from_the_upstreams_failures() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.head().await;
            drop(connection.ended().await);
        })
        .await;
        let (request, pieces) = streamed(SizeHint::with_exact(1000));
        let feeding = async move {
            pieces.send(Ok(Bytes::from_static(b"a part"))).await.unwrap();
            pieces.send(Err("the client is gone".into())).await.unwrap();
        };
        let upstream = to(address);
        let (answer, ()) = tokio::join!(upstream.forward(request), feeding);
        let error = answer.unwrap_err();
        assert!(matches!(error, UpstreamError::RequestBody(_)), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_long_upload_is_not_a_slow_answer() {
    within(async {
        let (address, _) = upstream(|mut connection: Accepted| async move {
            connection.request().await;
            connection.ok("done").await;
        })
        .await;
        let mut settings = settings(&[address]);
        settings.request_timeout = Duration::from_millis(150);
        let upstream = Upstream::new(settings);
        let (request, pieces) = streamed(SizeHint::with_exact(10));
        let feeding = async move {
            let mut pause = tokio::time::interval(Duration::from_millis(50));
            for _ in 0..10 {
                pause.tick().await;
                pieces.send(Ok(Bytes::from_static(b"x"))).await.unwrap();
            }
        };
        let (answer, ()) = tokio::join!(upstream.forward(request), feeding);
        assert_eq!(text(answer).await.unwrap(), "done");
    })
    .await;
}
