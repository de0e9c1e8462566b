//! What the spans of a request's steps say.

use std::{fmt, sync::Arc};

use http::{HeaderMap, StatusCode};
use opentelemetry::{
    Context, KeyValue,
    trace::{Status, TraceContextExt},
};

use super::{names, propagate, request::Request};
use crate::domain::FencingToken;

/// A step of a request that is under way; it ends when this is dropped.
pub struct Span(pub(super) Option<(Arc<Request>, Context)>);

/// The steps that have spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The ledger is asked for the lock.
    Begin,
    /// Another request of this process has it.
    Wait,
    /// The end of the attempt is stored.
    Commit,
}

// === impl Span ===

impl Span {
    /// Lets whoever gets `headers` continue the trace below this span.
    pub fn propagate(&self, headers: &mut HeaderMap) {
        if let Some((_, context)) = &self.0 {
            propagate::inject(context, headers);
        }
    }

    pub fn answered(&self, status: StatusCode) {
        self.set(|| [KeyValue::new(names::STATUS, i64::from(status.as_u16()))]);
        if status.is_server_error() {
            self.fail();
        }
    }

    /// It came to nothing; `why` is one of a few words.
    pub fn failed(&self, why: &'static str) {
        self.set(|| [KeyValue::new(names::ERROR, why)]);
        self.fail();
    }

    fn fail(&self) {
        if let Some((_, context)) = &self.0 {
            context.span().set_status(Status::error(""));
        }
    }

    pub(super) fn set<const N: usize>(&self, attributes: impl FnOnce() -> [KeyValue; N]) {
        if let Some((_, context)) = &self.0
            && context.span().is_recording()
        {
            context.span().set_attributes(attributes());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some((request, context)) = &self.0 {
            if let Some((number, token)) = request.attempt.get() {
                context.span().set_attributes(of_attempt(*number, *token));
            }
            context.span().end();
        }
    }
}

// === impl Step ===

impl Step {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Wait => "wait",
            Self::Commit => "commit",
        }
    }
}

pub(super) fn of_attempt(number: u32, token: FencingToken) -> [KeyValue; 2] {
    // Attributes have no unsigned numbers, and tokens stay far below the half of them.
    let token = i64::try_from(token.get()).unwrap_or(i64::MAX);
    [KeyValue::new(names::ATTEMPT, i64::from(number)), KeyValue::new(names::FENCING_TOKEN, token)]
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Span({})", if self.0.is_some() { "on" } else { "off" })
    }
}
