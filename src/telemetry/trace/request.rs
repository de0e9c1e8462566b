//! What the span of a request says.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock},
};

use http::{HeaderMap, Method, StatusCode};
use opentelemetry::{
    Context, KeyValue,
    trace::{
        SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
        Tracer as _,
    },
};
use opentelemetry_sdk::trace::SdkTracer;

use super::{
    names, propagate,
    span::{Span, Step, of_attempt},
};
use crate::{
    domain::{FencingToken, TracePoint},
    telemetry::{LoggedKey, Outcome},
};

/// Begins traces; the default one is switched off. Clones are the same.
#[derive(Clone, Default)]
pub struct Tracer(Option<SdkTracer>);

/// A request's place in its trace; clones are the same. Empty where tracing is off.
#[derive(Clone, Default)]
pub struct Trace(Option<Arc<Request>>);

// Every request and every call carries one.
const _: () = assert!(size_of::<Trace>() == size_of::<usize>());

pub(super) struct Request {
    tracer: SdkTracer,
    /// Of the request's own span.
    context: Context,
    pub(super) attempt: OnceLock<(u32, FencingToken)>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub outcome: Outcome,
    /// `None` where there was no answer.
    pub status: Option<StatusCode>,
    pub route: Option<&'a str>,
    pub request_id: &'a str,
}

// === impl Tracer ===

impl Tracer {
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Self(Some(tracer))
    }

    /// Begins the span of a request, within the trace that its `headers` name or as a new one.
    /// A trace that its caller does not record is not recorded here.
    pub fn request(&self, headers: &HeaderMap, method: &Method) -> Trace {
        let Some(tracer) = &self.0 else { return Trace(None) };
        let parent = propagate::extract(headers);
        // The route is not known yet, and its name is all that a name may hold of the target.
        let name: Cow<'static, str> = match *method {
            Method::POST => "POST".into(),
            Method::GET => "GET".into(),
            _ => method.as_str().to_owned().into(),
        };
        let builder = tracer.span_builder(name).with_kind(SpanKind::Server);
        let span = builder.start_with_context(tracer, &parent);
        let context = Context::new().with_span(span);
        let attempt = OnceLock::new();
        Trace(Some(Arc::new(Request { tracer: tracer.clone(), context, attempt })))
    }
}

// === impl Trace ===

impl Trace {
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What is stored for the traces of retries; `None` where nobody will find it.
    pub fn point(&self) -> Option<TracePoint> {
        let context = self.recorded()?.context.span().span_context().clone();
        Some(TracePoint {
            trace_id: context.trace_id().to_bytes(),
            span_id: context.span_id().to_bytes(),
        })
    }

    pub fn begin(&self, step: Step) -> Span {
        self.child(SpanKind::Internal, step.name())
    }

    /// Begins a call of this upstream.
    pub fn call(&self, upstream: &str) -> Span {
        let span = self.child(SpanKind::Client, "upstream");
        span.set(|| [KeyValue::new(names::UPSTREAM, upstream.to_owned())]);
        span
    }

    /// Tells which key the request has.
    pub fn keyed(&self, key: LoggedKey<'_>) {
        if let Some(request) = self.recorded() {
            request
                .context
                .span()
                .set_attribute(KeyValue::new(names::IDEMPOTENCY_KEY, key.to_string()));
        }
    }

    /// Tells which attempt the request has become; said by it and by each step that ends later.
    pub fn attempt(&self, number: u32, token: FencingToken) {
        // Its own span may be over, since its client left.
        if let Some(request) = &self.0 {
            // A request becomes one attempt at most.
            request.attempt.get_or_init(|| (number, token));
            request.context.span().set_attributes(of_attempt(number, token));
        }
    }

    /// Names the trace that executed what this request is told.
    pub fn link(&self, executed: Option<TracePoint>) {
        let (Some(request), Some(point)) = (self.recorded(), executed) else { return };
        let linked = SpanContext::new(
            TraceId::from_bytes(point.trace_id),
            SpanId::from_bytes(point.span_id),
            TraceFlags::SAMPLED,
            true,
            TraceState::default(),
        );
        request.context.span().add_link(linked, Vec::new());
    }

    /// Ends the request's own span.
    pub fn end(&self, ended: &Ended<'_>, method: &Method) {
        let Some(request) = self.recorded() else { return };
        let span = request.context.span();
        span.set_attribute(KeyValue::new(names::METHOD, method.as_str().to_owned()));
        span.set_attribute(KeyValue::new(names::OUTCOME, ended.outcome.label()));
        span.set_attribute(KeyValue::new(names::REQUEST_ID, ended.request_id.to_owned()));
        if let Some(route) = ended.route {
            span.update_name(format!("{method} {route}"));
            span.set_attribute(KeyValue::new(names::ROUTE, route.to_owned()));
        }
        if let Some(status) = ended.status {
            span.set_attribute(KeyValue::new(names::STATUS, i64::from(status.as_u16())));
        }
        if ended.status.is_none_or(|status| status.is_server_error()) {
            span.set_status(Status::error(ended.outcome.label()));
        }
        span.end();
    }

    fn child(&self, kind: SpanKind, name: &'static str) -> Span {
        Span(self.0.as_ref().map(|request| {
            let builder = request.tracer.span_builder(name).with_kind(kind);
            let span = builder.start_with_context(&request.tracer, &request.context);
            (Arc::clone(request), Context::new().with_span(span))
        }))
    }

    fn recorded(&self) -> Option<&Request> {
        self.0.as_deref().filter(|request| request.context.span().is_recording())
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer({})", if self.0.is_some() { "on" } else { "off" })
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({})", if self.is_on() { "on" } else { "off" })
    }
}
