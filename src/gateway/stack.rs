//! The whole way of a request through the gateway, in order, with the reason of each place.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, Version, header};
use http_body::Body;
use ipnet::IpNet;
use tokio::time::Instant;
use tower::{Layer, Service};

use super::{
    Match, RequestId, ResponseBody,
    announce::{Announce, Arrival},
    headers,
    idempotency::{Idempotency, IdempotencyLayer, Settings, Shared},
    observe::{Observation, Observed, ObservedBody},
    problem::{Code, Known, Problem, refuse},
    proxy::{Forward, RequestBody, Upstream, UpstreamBody},
    refusal::unkeyed,
    route::{Target, is_valid_host},
    timed::Timed,
};
use crate::{
    BoxError,
    arbiter::Permit,
    domain::{Peer, ScopeSource},
    telemetry::{Access, Outcome, RouteMetrics},
};

/// The body of an answer of the [`Gateway`].
pub type GatewayBody = ObservedBody<ResponseBody<UpstreamBody>>;

/// Routes each request to its upstream, keyed ones through [`Idempotency`]. Clones are one gateway.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    routes: Vec<Route>,
    shared: Shared,
    trusted_proxies: Vec<IpNet>,
    body_timeout: Duration,
    unmatched: RouteMetrics,
}

/// One route of the file, ready to serve.
#[derive(Debug)]
pub struct Route {
    matching: Match,
    forward: Forward,
    /// Runs the route's keyed requests; the others go to `forward`.
    keyed: Option<Idempotency<Announce<Forward>>>,
    /// Of key and scope, which `Connection` may not name.
    protected: Vec<HeaderName>,
    names: Arc<Observed>,
    metrics: RouteMetrics,
}

// === impl Route ===

impl Route {
    /// Plain proxying, streaming both ways.
    pub fn plain(name: &str, matching: Match, upstream: &Arc<Upstream>) -> Self {
        Self {
            matching,
            forward: Forward::new(Arc::clone(upstream)),
            keyed: None,
            protected: Vec::new(),
            names: Arc::new(Observed {
                route: Arc::from(name),
                upstream: Arc::from(upstream.name()),
            }),
            metrics: RouteMetrics::new(name),
        }
    }

    /// Runs the keyed requests of this route at most once; the others are proxied.
    pub fn keyed(
        matching: Match,
        upstream: &Arc<Upstream>,
        shared: Shared,
        settings: Settings,
    ) -> Self {
        let mut protected = vec![settings.header.clone()];
        if let ScopeSource::Headers(names) = &settings.scope.source {
            protected.extend_from_slice(names);
        }
        let (name, metrics) = (Arc::clone(&settings.route), settings.metrics.clone());
        let plain = Self::plain(&name, matching, upstream);
        let layer = IdempotencyLayer::new(shared, settings);
        let keyed = Some(layer.layer(Announce(plain.forward.clone())));
        Self { keyed, protected, metrics, ..plain }
    }

    /// What is known of a request that ended before its answer: without a key it was passed on,
    /// with one it may still be executed.
    fn unanswered<B>(&self, request: &Request<B>) -> Outcome {
        let is_keyed = self.keyed.as_ref().is_some_and(|keyed| keyed.guards(request));
        if is_keyed { Outcome::InProgress } else { Outcome::Passed }
    }
}

// === impl Gateway ===

impl Gateway {
    /// `routes` are tried in this order. `body_timeout` is the longest pause within the body of an
    /// unkeyed request.
    pub fn new(
        routes: Vec<Route>,
        shared: Shared,
        trusted_proxies: Vec<IpNet>,
        body_timeout: Duration,
    ) -> Self {
        let unmatched = RouteMetrics::unmatched();
        Self(Arc::new(Inner { routes, shared, trusted_proxies, body_timeout, unmatched }))
    }

    async fn answer<B>(self, mut request: Request<B>) -> Response<GatewayBody>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let started = Instant::now();
        // First, so that every answer and every log line has it.
        let request_id = RequestId::ensure(request.headers_mut());
        let method = request.method().clone();
        let trace = self.0.shared.tracer.request(request.headers(), &method);
        if trace.is_on() {
            request.extensions_mut().insert(trace.clone());
        }
        let path = Access::is_enabled().then(|| Box::from(request.uri().path()));

        let route = self.route(&request);
        let matched = route.as_ref().ok();
        // Now, so that a request that is cut off before its answer is counted, too.
        let mut observation = Observation {
            started,
            method,
            path,
            request_id: request_id.clone(),
            route: matched.map(|route| Arc::clone(&route.names)),
            metrics: matched.map_or(&self.0.unmatched, |route| &route.metrics).clone(),
            status: None,
            outcome: matched.map_or(Outcome::NoRoute, |route| route.unanswered(&request)),
            permit: None,
            trace,
        };
        let answered = match route {
            Ok(route) => self.forward(route, request, &request_id).await,
            Err(problem) => Err(problem),
        };
        let (mut response, permit) = match answered {
            Ok(answered) => answered,
            Err(problem) => (refuse(problem, &request_id), None),
        };

        request_id.set_if_missing(response.headers_mut());
        observation.outcome = response.extensions_mut().remove().unwrap_or(Outcome::Passed);
        observation.status = Some(response.status());
        observation.permit = permit;
        response.map(|body| ObservedBody::new(body, observation))
    }

    /// The route of a request, if every server on its way agrees on what the request names.
    fn route<B>(&self, request: &Request<B>) -> Result<&Route, Problem> {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let refuse = |detail| Problem::new(Code::BadRequest, Known::NotSent, detail);
        match (hosts.next(), hosts.next()) {
            (_, Some(_)) => return Err(refuse("The request has more than one Host line.")),
            (Some(host), None) if !is_valid_host(host.as_bytes()) => {
                return Err(refuse("The Host line names no host."));
            }
            // RFC 9112 section 3.2.
            (None, None) if request.version() == Version::HTTP_11 => {
                return Err(refuse("The request has no Host line."));
            }
            (Some(_) | None, None) => {}
        }
        if request.method() == Method::CONNECT {
            return Err(refuse("This is no forward proxy: it answers no CONNECT."));
        }
        let target = Target::of(request);
        if let Some(found) = super::path::ambiguity(&target.path) {
            let guarded =
                |route: &Route| route.keyed.is_some() && route.matching.matches_host(&target);
            if self.0.routes.iter().any(guarded) {
                return Err(refuse(match found {
                    "a dot segment" => "The path has a dot segment.",
                    "an empty segment" => "The path has an empty segment.",
                    _ => "The path has an escaped slash.",
                }));
            }
        }
        let route = self.0.routes.iter().find(|route| route.matching.matches(&target));
        route.ok_or_else(|| {
            Problem::new(Code::NoRoute, Known::NotSent, "No route matches host, path and method.")
        })
    }

    async fn forward<B>(
        &self,
        route: &Route,
        mut request: Request<B>,
        request_id: &RequestId,
    ) -> Result<(Response<ResponseBody<UpstreamBody>>, Option<Permit>), Problem>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let keyed = route.keyed.as_ref().filter(|keyed| keyed.guards(&request));
        let trusted = &self.0.trusted_proxies;
        let peer = request.extensions().get::<Peer>();
        let peer = peer.map(|peer| headers::Peer::new(peer.0.ip(), trusted));
        let arrival = Arrival { peer, version: request.version() };
        if request.uri().authority().is_some() {
            let target = request.uri().clone();
            headers::host_from_target(&target, request.headers_mut());
        }
        let fields = request.headers_mut();
        if let Some(named) = headers::connection_names(fields, &route.protected) {
            let detail = format!("The Connection line names {named}.");
            return Err(Problem::new(Code::BadRequest, Known::NotSent, detail));
        }
        // Before key and scope are read: what belongs to the connection names nobody.
        let upgrade = match keyed {
            Some(_) => headers::Upgrade::Remove,
            None => headers::Upgrade::Websocket,
        };
        headers::strip_request(fields, upgrade);
        headers::strip_forged(fields);
        request.extensions_mut().insert(arrival);
        let Some(keyed) = keyed else {
            return self.stream(&route.forward, request).await;
        };
        request.extensions_mut().insert(request_id.clone());
        let request = request.map(RequestBody::stream);
        Ok((keyed.clone().call(request).await.map_err(unkeyed)?, None))
    }

    /// A request without a key on its way to the upstream and back, unbuffered.
    async fn stream<B>(
        &self,
        forward: &Forward,
        request: Request<B>,
    ) -> Result<(Response<ResponseBody<UpstreamBody>>, Option<Permit>), Problem>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let permit = self.0.shared.permits.take(None).map_err(|_| {
            let detail = "Too many requests are in flight.";
            Problem::new(Code::Overloaded, Known::NotSent, detail).without_key()
        })?;
        let timeout = self.0.body_timeout;
        let request = request.map(|body| RequestBody::stream(Timed::new(body, timeout)));
        let mut response = Announce(forward.clone()).call(request).await.map_err(unkeyed)?;
        let status = response.status();
        headers::strip_response(response.headers_mut(), status);
        Ok((response.map(ResponseBody::live), Some(permit)))
    }
}

impl<B> Service<Request<B>> for Gateway
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<GatewayBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let gateway = self.clone();
        Box::pin(async move { Ok(gateway.answer(request).await) })
    }
}
