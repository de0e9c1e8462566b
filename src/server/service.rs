//! The step from hyper to the service: which one is current, who asks, and when the answer ends.

use std::{
    cell::RefCell,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Method, Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use pin_project_lite::pin_project;
use tokio::sync::watch;
use tower::{Service, ServiceExt};

use super::progress::Progress;
use crate::domain::{Peer, Tether};

/// The service in effect, which a reload can replace between two requests.
struct Current<S> {
    service: S,
    news: watch::Receiver<S>,
}

pin_project! {
    /// A response body that tells when it has ended.
    #[derive(Debug)]
    pub(super) struct Answer<B> {
        #[pin]
        body: B,
        _end: End,
    }
}

/// Tells, when dropped, that the answer has ended.
#[derive(Debug)]
struct End(Progress);

/// hyper's kind of service around the current one of `services`.
pub(super) fn bridge<S, B>(
    services: watch::Receiver<S>,
    peer: Peer,
    progress: Progress,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<Answer<B>>,
    Error = Infallible,
    Future: Send,
> + Send
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>,
    S: Clone + Send + Sync + 'static,
    B: Body + Send,
{
    let current = RefCell::new(Current::new(services));
    service_fn(move |mut request: Request<Incoming>| {
        let mut tethered = None;
        let service = if is_framing_plain(&request) {
            progress.request_began();
            request.extensions_mut().insert(peer);
            if request.headers().contains_key(header::UPGRADE) {
                let (tether, end) = Tether::new();
                request.extensions_mut().insert(tether);
                tethered = Some(end);
            }
            Some(current.borrow_mut().get())
        } else {
            progress.refuse();
            None
        };
        let progress = progress.clone();
        async move {
            let Some(service) = service else {
                // The connection's task sees the refusal and drops this future.
                return std::future::pending().await;
            };
            let connects = request.method() == Method::CONNECT;
            let response = service.oneshot(request).await?;
            let changes_hands = response.status() == StatusCode::SWITCHING_PROTOCOLS
                || connects && response.status().is_success();
            if changes_hands {
                progress.hand_over(tethered);
            }
            Ok(response.map(|body| Answer { body, _end: End(progress) }))
        }
    })
}

/// Whether the body's length is beyond dispute: RFC 9112 section 6.1 knows codings other than
/// `chunked`, and coding twice; nobody sends them but to confuse two parsers.
///
/// Of a length beside a coding, and of two lengths, hyper has taken care.
fn is_framing_plain(request: &Request<Incoming>) -> bool {
    let mut codings = request.headers().get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

// === impl Current ===

impl<S: Clone> Current<S> {
    fn new(mut news: watch::Receiver<S>) -> Self {
        let service = news.borrow_and_update().clone();
        Self { service, news }
    }

    /// Costs one load and one clone, unless there is a new one.
    fn get(&mut self) -> S {
        // An error says that no other one will come: the last one stays.
        if self.news.has_changed().unwrap_or(false) {
            self.service = self.news.borrow_and_update().clone();
        }
        self.service.clone()
    }
}

// === impl Answer ===

impl<B: Body> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl End ===

impl Drop for End {
    fn drop(&mut self) {
        self.0.answer_ended();
    }
}
