//! Runs each keyed request once and gives every retry the first answer.
//!
//! Place it inside whatever authenticates the caller, since its scope is read here and a replay
//! asks nobody again, and outside anything that retries, since a retry below it is another
//! execution.
//!
//! # A keyed request
//!
//! 1. Key and scope are read, a permit is taken, the body is read up to its bound: a slow client
//!    holds no key.
//! 2. The [`Arbiter`](crate::arbiter::Arbiter) judges it.
//! 3. The one that executes runs in a task of its own. The client is answered after the answer is
//!    stored.
//!
//! # Differences from a cache
//!
//! The body is part of the comparison, never of the key: the same key with another body is refused
//! (422), not executed.
//!
//! The wrapped service's errors never reach the caller of a keyed request: they become problem
//! answers, which say what is known of the operation. On other requests they pass through.

mod admit;
mod answer;
mod execute;
mod layer;
mod service;
mod settings;
#[cfg(test)]
mod tests;

pub use self::{
    layer::IdempotencyLayer,
    service::{Idempotency, ResponseFuture},
    settings::{OpensGate, Settings, Shared},
};
