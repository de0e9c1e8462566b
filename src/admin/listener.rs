//! The admin listener itself.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use axum::Router;
use tokio::{net::TcpListener, sync::oneshot, time::sleep};

use super::{Api, Readiness, routes};
use crate::telemetry::Metrics;

/// A bound admin listener.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    local_address: SocketAddr,
    router: Router,
}

/// How long answers that are under way when it stops may take. They are a few lines long.
const PATIENCE: Duration = Duration::from_secs(1);

// === impl Admin ===

impl Admin {
    /// Binds `address`; port 0 picks a free one. Without `api`, which takes a ledger with an
    /// operator's side, nothing is below `/api/`.
    pub async fn bind(
        address: SocketAddr,
        readiness: Readiness,
        metrics: Metrics,
        api: Option<Api>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let local_address = listener.local_addr()?;
        Ok(Self { listener, local_address, router: routes::router(readiness, metrics, api) })
    }

    /// Where it listens, with the port that was picked.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Answers until `shutdown` resolves. Stop it last: while the public listener drains, probes
    /// must see it drain and metrics must be counted.
    ///
    /// Dropping the future stops it at once.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send + 'static) {
        let (stopping, stopped) = oneshot::channel::<()>();
        let service = self.router.into_make_service_with_connect_info::<SocketAddr>();
        let serving = axum::serve(self.listener, service)
            .with_graceful_shutdown(async move {
                shutdown.await;
                drop(stopping);
            })
            .into_future();
        let out_of_patience = async {
            drop(stopped.await);
            sleep(PATIENCE).await;
        };
        tokio::select! {
            result = serving => {
                if let Err(error) = result {
                    tracing::error!(error = &error as &dyn std::error::Error, "admin stopped");
                }
            }
            () = out_of_patience => {}
        }
    }
}
