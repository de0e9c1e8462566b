//! Spans of a request and its steps, sent to a collector over OTLP.
//!
//! Switched off, which is the default, a [`Trace`] is an empty pointer: nothing is read, made or
//! written, and the fields of W3C Trace Context pass through like any others.

mod collector;
mod export;
mod names;
mod propagate;
mod request;
mod span;

pub use self::{
    export::{Exporter, Settings, start},
    request::{Ended, Trace, Tracer},
    span::{Span, Step},
};
