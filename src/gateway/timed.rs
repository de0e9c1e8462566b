//! A request body whose pieces may not take too long to come.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::BoxError;

/// Fails a body that pauses for longer than `timeout` between two pieces.
#[derive(Debug)]
pub(super) struct Timed<B> {
    body: B,
    timeout: Duration,
    /// Runs only while the next piece is awaited.
    pause: Option<Pin<Box<Sleep>>>,
}

/// The client paused for too long within its request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing of the request's body came for {0:?}")]
pub(super) struct TooSlow(Duration);

// === impl Timed ===

impl<B> Timed<B> {
    pub(super) fn new(body: B, timeout: Duration) -> Self {
        Self { body, timeout, pause: None }
    }
}

impl<B> Body for Timed<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.pause = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let timeout = self.timeout;
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(timeout)));
        pause.as_mut().poll(cx).map(|()| Some(Err(TooSlow(timeout).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use bytes::Bytes;
    use http_body_util::BodyExt;
    use tokio::{sync::mpsc, time::Instant};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);
    const ALMOST: Duration = Duration::from_millis(29_999);

    struct Pieces(mpsc::Receiver<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_long_but_may_not_pause() {
        let (pieces, queue) = mpsc::channel(1);
        let mut body = pin!(Timed::new(Pieces(queue), TIMEOUT));
        for _ in 0..3 {
            let started = Instant::now();
            let late = async {
                sleep(ALMOST).await;
                pieces.send(Bytes::from_static(b"piece")).await.unwrap();
            };
            let ((), frame) = tokio::join!(late, body.frame());
            assert!(frame.unwrap().is_ok());
            assert_eq!(started.elapsed(), ALMOST);
        }

        let paused = Instant::now();
        let error = body.frame().await.unwrap().unwrap_err();

        assert_eq!(paused.elapsed(), TIMEOUT);
        assert!(error.is::<TooSlow>());
    }
}
