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
//! # In a service of one's own
//!
//! With the defaults of the configuration file, around any service:
//!
//! ```
//! use std::{convert::Infallible, sync::Arc};
//!
//! use bytes::Bytes;
//! use http::{HeaderName, Request, Response};
//! use http_body_util::{BodyExt, Full};
//! use oncegate::{
//!     domain::ScopeRule,
//!     gateway::{
//!         IdempotencyLayer,
//!         idempotency::{Settings, Shared},
//!     },
//!     ledger::embedded::{self, Embedded},
//! };
//! use tower::{Layer, Service, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // `Settings::file(path)` survives restarts.
//! let ledger = Embedded::open(&embedded::Settings::memory())?;
//! let scope = ScopeRule::headers([HeaderName::from_static("x-api-key")]);
//! let layer =
//!     IdempotencyLayer::new(Shared::new(Arc::new(ledger)), Settings::new("payments", scope));
//!
//! let pay = service_fn(async |_: Request<Full<Bytes>>| {
//!     Ok::<_, Infallible>(Response::new(Full::from("paid")))
//! });
//! let mut pay = layer.layer(pay);
//!
//! let request = || {
//!     Request::post("/payments")
//!         .header("x-api-key", "shop-1")
//!         .header("idempotency-key", "order-1")
//!         .body(Full::from("1999 eur"))
//! };
//! let first = pay.call(request()?).await?;
//! let again = pay.call(request()?).await?;
//! assert!(!first.headers().contains_key("idempotent-replayed"));
//! assert_eq!(again.headers()["idempotent-replayed"], "true");
//! assert_eq!(again.into_body().collect().await?.to_bytes(), "paid");
//! # Ok(())
//! # }
//! ```
//!
//! Each decision is a field of [`Settings`]:
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//!
//! use http::{HeaderName, Method, StatusCode};
//! use oncegate::{
//!     arbiter::{Disposition, Policy, Responses},
//!     domain::{Retention, ScopeRule},
//!     gateway::idempotency::Settings,
//!     ledger::Takeover,
//! };
//!
//! let scope = ScopeRule::headers([HeaderName::from_static("x-tenant")]);
//! let defaults = Settings::new("refunds", scope);
//! let settings = Settings {
//!     namespace: "payments".into(),
//!     methods: vec![Method::POST, Method::PUT],
//!     max_request_body: 64 * 1024,
//!     // A retry that comes too early is refused at once instead of waiting.
//!     wait: None,
//!     policy: Arc::new(Policy {
//!         // A lost answer stays lost until somebody looks.
//!         takeover: Takeover::Never,
//!         retention: Retention { completed: Duration::from_hours(72), unknown: None },
//!         responses: Arc::new(
//!             Responses::default().status(StatusCode::NOT_FOUND, Disposition::Release),
//!         ),
//!         settles: false,
//!     }),
//!     ..defaults
//! };
//! # assert_eq!(&*settings.namespace, "payments");
//! ```
//!
//! `examples/axum.rs` has it in an axum app, with a clean stop.
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
