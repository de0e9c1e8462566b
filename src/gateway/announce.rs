//! Tells the upstream who asked, and through whom.

use std::task::{Context, Poll};

use http::{Request, Version};
use tower::Service;

use super::headers::{self, Peer};

/// Adds `X-Forwarded-*` and `Via` to requests that carry an [`Arrival`].
///
/// Place it innermost but for the upstream: what the gateway adds is not the client's, so key,
/// scope and fingerprint are read before it.
#[derive(Clone, Debug)]
pub(super) struct Announce<S>(pub(super) S);

/// How a request came in; travels among its extensions.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) peer: Option<Peer>,
    pub(super) version: Version,
}

// === impl Announce ===

impl<S, B> Service<Request<B>> for Announce<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if let Some(Arrival { peer, version }) = request.extensions_mut().remove() {
            let fields = request.headers_mut();
            if let Some(peer) = peer {
                headers::forwarded_by(fields, &peer);
            }
            headers::via(fields, version);
        }
        self.0.call(request)
    }
}
