//! Counts and logs a request when it has ended, answered or not.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::RequestId;
use crate::{
    arbiter::Permit,
    telemetry::{
        Access, Outcome, RouteMetrics,
        trace::{Ended, Trace},
    },
};

/// What is said about a request once it has ended; dropping it says it.
#[derive(Debug)]
pub(super) struct Observation {
    pub(super) started: Instant,
    pub(super) method: Method,
    /// Without query; `None` while nobody reads the access log.
    pub(super) path: Option<Box<str>>,
    pub(super) request_id: RequestId,
    pub(super) route: Option<Arc<Observed>>,
    pub(super) metrics: RouteMetrics,
    /// `None` until there is an answer.
    pub(super) status: Option<StatusCode>,
    /// What is known so far.
    pub(super) outcome: Outcome,
    /// Of an unkeyed request: it is in flight until its answer has ended.
    pub(super) permit: Option<Permit>,
    pub(super) trace: Trace,
}

/// A route's names, for the access log.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) route: Arc<str>,
    pub(super) upstream: Arc<str>,
}

/// An answer's body that ends its request's [`Observation`].
#[derive(Debug)]
pub struct ObservedBody<B> {
    body: B,
    _observation: Observation,
}

// === impl Observation ===

impl Drop for Observation {
    fn drop(&mut self) {
        let duration = self.started.elapsed();
        self.metrics.request_ended(self.outcome, duration);
        let ended = Ended {
            outcome: self.outcome,
            status: self.status,
            route: self.route.as_ref().map(|names| &*names.route),
            request_id: self.request_id.as_str(),
        };
        self.trace.end(&ended, &self.method);
        if let Some(path) = &self.path {
            Access {
                method: &self.method,
                path,
                status: self.status,
                outcome: self.outcome,
                duration,
                route: self.route.as_ref().map(|names| &*names.route),
                upstream: self.route.as_ref().map(|names| &*names.upstream),
                request_id: self.request_id.as_str(),
            }
            .log();
        }
    }
}

// === impl ObservedBody ===

impl<B> ObservedBody<B> {
    pub(super) fn new(body: B, observation: Observation) -> Self {
        Self { body, _observation: observation }
    }
}

impl<B: Body + Unpin> Body for ObservedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
