//! The admin listener itself.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use axum::{Router, ServiceExt as _, extract::Request};
use tokio::net::TcpListener;
use tower::{ServiceExt as _, service_fn};

use super::{Api, Readiness, routes};
use crate::telemetry::Metrics;

/// A bound admin listener.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    local_address: SocketAddr,
    starting: Router,
    started: Arc<OnceLock<Router>>,
}

/// The start of a gateway, as its [`Admin`] tells of it: alive, but not ready.
#[derive(Debug)]
#[must_use]
pub struct Starting {
    metrics: Metrics,
    started: Arc<OnceLock<Router>>,
}

// === impl Admin ===

impl Admin {
    /// Binds `address`; port 0 picks a free one.
    pub async fn bind(address: SocketAddr, metrics: Metrics) -> io::Result<(Self, Starting)> {
        let listener = TcpListener::bind(address).await?;
        let local_address = listener.local_addr()?;
        let started = Arc::default();
        let starting = Starting { metrics: metrics.clone(), started: Arc::clone(&started) };
        let routes = routes::starting(metrics);
        Ok((Self { listener, local_address, starting: routes, started }, starting))
    }

    /// Where it listens, with the port that was picked.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Answers until it is dropped. Drop it last: while the public listener drains, probes must
    /// see it drain and metrics must be counted.
    pub async fn serve(self) {
        let Self { listener, starting, started, .. } = self;
        let current = service_fn(move |request: Request| {
            started.get().unwrap_or(&starting).clone().oneshot(request)
        });
        let service = current.into_make_service_with_connect_info::<SocketAddr>();
        if let Err(error) = axum::serve(listener, service).await {
            tracing::error!(error = &error as &dyn std::error::Error, "admin stopped");
        }
    }
}

// === impl Starting ===

impl Starting {
    /// From now on `readiness` tells whether it is ready. Without `api`, which takes a ledger with
    /// an operator's side, nothing is below `/api/`.
    pub fn end(self, readiness: Readiness, api: Option<Api>) {
        self.started.get_or_init(|| routes::router(readiness, self.metrics, api));
    }
}
