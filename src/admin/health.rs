//! The client's side of a probe, for container images without a shell.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};

use super::exchange::{AskError, Bounds, exchange};

/// Why the gateway is not, or could not be asked whether it is, ready.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    #[error(transparent)]
    NotAsked(#[from] AskError),
    #[error("answered {status}: {reason}")]
    NotReady { status: StatusCode, reason: String },
}

/// Probes have time limits of their own, a few seconds long; the reason is one line.
const BOUNDS: Bounds = Bounds { patience: Duration::from_secs(3), longest_answer: 4096 };

/// Asks the admin address `url` (`http://host:port`) whether the gateway is ready.
///
/// Cancel safe: it changes nothing.
pub async fn health_check(url: &str) -> Result<(), HealthError> {
    let request = Request::get("/");
    let (status, body) = exchange(url, "/readyz", request, Bytes::new(), BOUNDS).await?;
    if status.is_success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&body).trim_end().to_owned();
    Err(HealthError::NotReady { status, reason })
}
