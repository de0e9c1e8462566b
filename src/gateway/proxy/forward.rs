//! Chooses an endpoint and a connection, and replaces them as long as not one byte was written.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE},
    request::Parts,
};
use http_body::Body as _;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use tokio::time::{Instant, timeout_at};
use tower::Service;

use super::{
    Settings,
    answer::{Lent, UpstreamBody},
    body::RequestBody,
    connect::connect,
    endpoint::{Endpoints, InFlight, Peer},
    error::UpstreamError,
    link::{Failure, Link},
    upgrade::{self, Switching},
};
use crate::{
    gateway::headers::host_from_target,
    ledger::Gate,
    telemetry::{Chain, UpstreamMetrics, trace::Trace},
};

/// A set of endpoints that answer alike, with their connections.
#[derive(Debug)]
pub struct Upstream {
    settings: Settings,
    endpoints: Endpoints,
    metrics: UpstreamMetrics,
}

/// Forwards each request to an [`Upstream`] and gives its answer. Clones share its connections.
///
/// Place it innermost. A request with a [`Gate`] among its extensions is keyed: its body must be
/// [`RequestBody::full`].
#[derive(Clone, Debug)]
pub struct Forward {
    upstream: Arc<Upstream>,
}

/// A request that may be sent more than once, as long as not one byte was written.
struct Call {
    head: Parts,
    /// `None` while it is on its way.
    body: Option<RequestBody>,
    gate: Option<Gate>,
    deadline: Instant,
    client: Option<Switching>,
}

// === impl Forward ===

impl Forward {
    pub fn new(upstream: Arc<Upstream>) -> Self {
        Self { upstream }
    }
}

impl Service<Request<RequestBody>> for Forward {
    type Response = Response<UpstreamBody>;
    type Error = UpstreamError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, UpstreamError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        let upstream = Arc::clone(&self.upstream);
        Box::pin(async move {
            let started = Instant::now();
            let trace = request.extensions_mut().remove::<Trace>().unwrap_or_default();
            let span = trace.call(upstream.name());
            span.propagate(request.headers_mut());
            let answered = upstream.forward(request).await;
            match &answered {
                Ok(response) => span.answered(response.status()),
                Err(error) => span.failed(error.label()),
            }
            let status = answered.as_ref().ok().map(Response::status);
            upstream.metrics.call_ended(status, started.elapsed());
            answered.inspect_err(|error| upstream.report(error))
        })
    }
}

// === impl Upstream ===

impl Upstream {
    /// Makes no connection yet.
    pub fn new(settings: Settings) -> Self {
        let metrics = UpstreamMetrics::new(&settings.name);
        Self { endpoints: Endpoints::new(&settings), settings, metrics }
    }

    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Tells the operator what the client is not told.
    fn report(&self, error: &UpstreamError) {
        match error {
            UpstreamError::NotSent(_) | UpstreamError::Interrupted(_) | UpstreamError::TimedOut => {
                let error = Chain(error);
                tracing::warn!(upstream = self.name(), %error, "upstream gave no whole answer");
            }
            UpstreamError::Lapsed | UpstreamError::RequestBody(_) => {}
        }
    }

    /// Sends `request` and gives its answer as soon as the answer's head has arrived.
    ///
    /// The path and query go out as they came, in origin form; `Host` is passed on, or made from an
    /// absolute target (RFC 9112 section 3.2.2). Hop-by-hop fields must have been removed.
    ///
    /// Cancel safe in this sense: dropping the future, or later the body, closes the connection. Of
    /// a keyed call the unsent bytes are then discarded, and its gate is taken back if not one was
    /// sent.
    pub async fn forward(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<UpstreamBody>, UpstreamError> {
        let gate = request.extensions_mut().remove::<Gate>();
        let switches = gate.is_none() && request.headers().contains_key(UPGRADE);
        let client = switches.then(|| Switching::of(&mut request));
        let (mut head, mut body) = request.into_parts();
        poll_fn(|cx| Poll::Ready(body.gather(cx))).await.map_err(UpstreamError::RequestBody)?;
        head.extensions.clear();
        prepare(&mut head, &body);
        let deadline = Instant::now() + self.settings.request_timeout;
        let mut call = Call { head, body: Some(body), gate, deadline, client };
        let mut cause = "the upstream has no endpoint".into();
        let mut tried = Vec::new();
        while let Some((number, peer)) = self.endpoints.pick(&tried) {
            match self.reach(peer, &mut call).await {
                Ok(response) => return Ok(response),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Unwritten(error)) => cause = error,
            }
            if call.body.is_none() || Instant::now() >= deadline {
                break;
            }
            tried.push(number);
        }
        Err(UpstreamError::NotSent(cause))
    }

    /// Sends the call to `peer`: over an idle connection, or else, or when that turns out to be
    /// dead before the first byte, over a fresh one.
    async fn reach(
        &self,
        peer: &Arc<Peer>,
        call: &mut Call,
    ) -> Result<Response<UpstreamBody>, Failure> {
        let in_flight = InFlight::new(peer);
        if let Some(link) = peer.pool.take() {
            match self.send(link, call).await {
                Ok((response, link)) => return self.answer(response, link, in_flight, call),
                Err(Failure::Unwritten(_)) if call.body.is_some() => {}
                Err(failure) => return Err(failure),
            }
        }
        // Boxed: most requests find a connection, and need not carry the room for making one.
        let link = Box::pin(self.open(peer, call.deadline)).await?;
        let (response, link) = self.send(link, call).await?;
        self.answer(response, link, in_flight, call)
    }

    /// Makes a connection to `peer`.
    async fn open(&self, peer: &Peer, deadline: Instant) -> Result<Box<Link>, Failure> {
        let connecting = connect(&peer.endpoint, self.settings.connect_timeout);
        let stream = match timeout_at(deadline, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                self.endpoints.rest(peer);
                let error = format!("could not connect to {}: {error}", peer.endpoint);
                return Err(Failure::Unwritten(error.into()));
            }
            Err(elapsed) => return Err(Failure::Unwritten(elapsed.into())),
        };
        let opened = Link::open(stream, self.settings.max_answer_head).await;
        opened.map_err(|error| Failure::Unwritten(error.into()))
    }

    /// Sends the call over `link`. After `Unwritten` the call has its body back and `link` is gone.
    async fn send(
        &self,
        mut link: Box<Link>,
        call: &mut Call,
    ) -> Result<(Response<Incoming>, Box<Link>), Failure> {
        let Some(body) = call.body.take() else {
            return Err(Failure::Unwritten("the request is not at hand any more".into()));
        };
        let (body, spare) = body.retryable(link.wire());
        // A long upload is not a slow answer.
        let renewed = body.is_stream().then_some(self.settings.request_timeout);
        let request = Request::from_parts(call.head.clone(), body);
        match link.exchange(request, call.gate.clone(), call.deadline, renewed).await {
            Ok(response) => Ok((response, link)),
            Err(failure) => {
                // Before anything else is tried: the connection takes the gate back.
                drop(link);
                if matches!(failure, Failure::Unwritten(_)) {
                    call.body = spare.into_body();
                }
                Err(failure)
            }
        }
    }

    fn answer(
        &self,
        response: Response<Incoming>,
        mut link: Box<Link>,
        in_flight: InFlight,
        call: &mut Call,
    ) -> Result<Response<UpstreamBody>, Failure> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return self.switch(response, link, in_flight, call);
        }
        if let Some(surplus) = link.surplus() {
            return Err(Failure::Final(surplus));
        }
        let (mut head, incoming) = response.into_parts();
        head.version = Version::HTTP_11;
        if !settle_framing(&mut head.headers) {
            let error = "the answer is in a transfer coding other than chunked".into();
            return Err(Failure::Final(UpstreamError::Interrupted(error)));
        }
        let body = if link.is_reusable() {
            link.rest();
            in_flight.peer().pool.put(link);
            UpstreamBody::whole(incoming)
        } else {
            let between = call.gate.is_none().then_some(self.settings.stream_timeout);
            UpstreamBody::arriving(incoming, Lent { link, in_flight, between })
        };
        Ok(Response::from_parts(head, body))
    }

    /// Hands both connections over to a task that joins them.
    fn switch(
        &self,
        response: Response<Incoming>,
        link: Box<Link>,
        in_flight: InFlight,
        call: &mut Call,
    ) -> Result<Response<UpstreamBody>, Failure> {
        let Some(client) = call.client.take().filter(|_| link.has_ended()) else {
            let error = "the upstream switched protocols unasked".into();
            return Err(Failure::Final(UpstreamError::Interrupted(error)));
        };
        let (mut head, incoming) = response.into_parts();
        head.extensions.remove::<OnUpgrade>();
        link.rest();
        upgrade::join(client, link.into_wire(), self.settings.stream_timeout, in_flight);
        Ok(Response::from_parts(head, UpstreamBody::whole(incoming)))
    }
}

/// Makes the head say what goes over this connection: HTTP/1.1, origin form, the body's framing.
fn prepare(head: &mut Parts, body: &RequestBody) {
    head.version = Version::HTTP_11;
    if head.uri.authority().is_some() {
        to_origin_form(head);
    }
    // HTTP/1.0 knows no `Host`, HTTP/1.1 demands one (RFC 9112 section 3.2).
    head.headers.entry(HOST).or_insert(HeaderValue::from_static(""));
    // The client was told to continue when its body was first read.
    head.headers.remove(EXPECT);
    head.headers.remove(TRANSFER_ENCODING);
    match body.size_hint().exact() {
        Some(0) => {
            if head.headers.contains_key(CONTENT_LENGTH) {
                head.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
        }
        Some(length) => drop(head.headers.insert(CONTENT_LENGTH, length.into())),
        None => {
            head.headers.remove(CONTENT_LENGTH);
            head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
}

/// Leaves an answer with one length: chunks beat a `Content-Length` (RFC 9112 section 6.3), and
/// passing that on would let the client read another answer than was read here. False for a body
/// that is coded in a way nobody here undoes.
fn settle_framing(headers: &mut HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            headers.remove(CONTENT_LENGTH);
            true
        }
        (Some(_), _) => false,
    }
}

fn to_origin_form(head: &mut Parts) {
    host_from_target(&head.uri, &mut head.headers);
    let uri = std::mem::take(&mut head.uri).into_parts();
    head.uri = uri.path_and_query.map_or_else(Uri::default, Uri::from);
}

impl fmt::Debug for Call {
    /// Header values and the query can hold what only the caller may see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.head.method).finish_non_exhaustive()
    }
}
