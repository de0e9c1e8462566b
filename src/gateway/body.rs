//! The bodies of answers: whole, live, or live after a part that was captured.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body of an answer that may come from memory or from the wrapped service.
pub struct ResponseBody<B>(Kind<B>);

enum Kind<B> {
    /// Empty once it was given out.
    Whole(Bytes),
    Live {
        /// What was captured before the body turned out to be too large to keep.
        first: Bytes,
        rest: Pin<Box<B>>,
    },
}

// === impl ResponseBody ===

impl<B> ResponseBody<B> {
    pub(super) const fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
    }

    /// As the wrapped service gives it.
    pub(super) fn live(body: B) -> Self {
        Self::resumed(Bytes::new(), body)
    }

    /// What was captured, and then the rest.
    pub(super) fn resumed(first: Bytes, rest: B) -> Self {
        Self(Kind::Live { first, rest: Box::pin(rest) })
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.0 {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Live { first, rest } if first.is_empty() => rest.as_mut().poll_frame(cx),
            Kind::Live { first, .. } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(first))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Live { first, rest } => first.is_empty() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let length = |bytes: &Bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(length(bytes)),
            Kind::Live { first, rest } => {
                let mut hint = rest.size_hint();
                // The upper bound first: a lower one above it is a panic.
                if let Some(upper) = hint.upper() {
                    hint.set_upper(upper.saturating_add(length(first)));
                }
                hint.set_lower(hint.lower().saturating_add(length(first)));
                hint
            }
        }
    }
}

impl<B> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => write!(f, "ResponseBody(<{} bytes>)", bytes.len()),
            Kind::Live { .. } => f.write_str("ResponseBody(<stream>)"),
        }
    }
}
