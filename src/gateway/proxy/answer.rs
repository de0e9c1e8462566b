//! The body of an answer, which drives its connection until the answer has ended.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{endpoint::InFlight, error::UpstreamError, link::Link};

/// The body of an upstream's answer.
///
/// Dropping it before its end closes the connection. An error is the last thing it gives.
pub struct UpstreamBody {
    incoming: Incoming,
    /// `None` once everything has arrived, or something failed.
    lent: Option<Lent>,
}

/// The connection of an answer that is still arriving.
pub(super) struct Lent {
    pub(super) link: Box<Link>,
    pub(super) in_flight: InFlight,
    /// How long each further piece may take; `None` leaves the call's own deadline.
    pub(super) between: Option<Duration>,
}

// === impl UpstreamBody ===

impl UpstreamBody {
    /// Everything has arrived.
    pub(super) fn whole(incoming: Incoming) -> Self {
        Self { incoming, lent: None }
    }

    pub(super) fn arriving(incoming: Incoming, mut lent: Lent) -> Self {
        lent.renew();
        Self { incoming, lent: Some(lent) }
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let incoming = Pin::new(&mut self.incoming);
        let Some(lent) = &mut self.lent else {
            return incoming.poll_frame(cx).map_err(interrupted);
        };
        // Only the connection can make it ready, and it is driven here.
        let mut unwoken = Context::from_waker(Waker::noop());
        let mut frame = incoming.poll_frame(&mut unwoken);
        if frame.is_pending() {
            lent.link.drive(cx);
            frame = Pin::new(&mut self.incoming).poll_frame(&mut unwoken);
        }
        match frame {
            Poll::Ready(Some(Ok(frame))) => {
                if frame.is_trailers() || self.incoming.is_end_stream() {
                    self.finish(cx)?;
                } else {
                    lent.renew();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(interrupted(error)))),
            Poll::Ready(None) => {
                self.finish(cx)?;
                Poll::Ready(None)
            }
            Poll::Pending if lent.link.has_ended() => {
                let error = "the connection ended within the answer".into();
                Poll::Ready(Some(Err(UpstreamError::Interrupted(error))))
            }
            Poll::Pending => {
                ready!(lent.link.poll_deadline(cx));
                Poll::Ready(Some(Err(UpstreamError::TimedOut)))
            }
        }
    }

    /// The answer is complete: gives the connection back, or closes it if the request is not.
    fn finish(&mut self, cx: &mut Context<'_>) -> Result<(), UpstreamError> {
        let Some(mut lent) = self.lent.take() else { return Ok(()) };
        if !lent.link.is_reusable() {
            lent.link.drive(cx);
        }
        if let Some(surplus) = lent.link.surplus() {
            return Err(surplus);
        }
        lent.link.rest();
        if lent.link.is_reusable() {
            lent.in_flight.peer().pool.put(lent.link);
        }
        Ok(())
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = self.get_mut();
        let frame = this.poll_next(cx);
        if matches!(frame, Poll::Ready(Some(Err(_)))) {
            this.lent = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.lent.is_none() && self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Debug for UpstreamBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamBody")
            .field("is_whole", &self.lent.is_none())
            .finish_non_exhaustive()
    }
}

fn interrupted(error: hyper::Error) -> UpstreamError {
    UpstreamError::Interrupted(error.into())
}

// === impl Lent ===

impl Lent {
    fn renew(&mut self) {
        if let Some(between) = self.between {
            self.link.set_deadline(Instant::now() + between);
        }
    }
}
