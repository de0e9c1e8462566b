//! The client's side of a probe, for container images without a shell.

use std::time::Duration;

use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use crate::BoxError;

/// Why the gateway is not, or could not be asked whether it is, ready.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    #[error("{url} is not an http URL with a host")]
    Url { url: String },
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("could not ask {address}")]
    Unreachable {
        address: String,
        #[source]
        source: BoxError,
    },
    #[error("answered {status}: {reason}")]
    NotReady { status: StatusCode, reason: String },
}

/// For the whole check; probes have time limits of their own, a few seconds long.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of an answer that are read; the reason is one line.
const LONGEST_ANSWER: usize = 4096;

/// Asks the admin address `url` (`http://host:port`) whether the gateway is ready.
///
/// Cancel safe: it changes nothing.
pub async fn health_check(url: &str) -> Result<(), HealthError> {
    let invalid = || HealthError::Url { url: url.to_owned() };
    let uri: Uri = url.parse().map_err(|_| invalid())?;
    let authority = uri.authority().ok_or_else(invalid)?;
    if uri.scheme_str() != Some("http") {
        return Err(invalid());
    }
    // Brackets belong to an IPv6 address in a URL, not to the address.
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = authority.port_u16().unwrap_or(80);

    let asking = async {
        let stream = TcpStream::connect((host, port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::get("/readyz")
            .header(header::HOST, authority.as_str())
            .header(header::CONNECTION, "close")
            .body(Empty::<Bytes>::new())?;
        let answering = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LONGEST_ANSWER).collect().await?;
            Ok::<_, BoxError>((status, body.to_bytes()))
        };
        // The answer can only come while the connection is driven; its own end tells nothing more.
        let (answer, _) = tokio::join!(answering, connection);
        answer
    };
    let answer = timeout(PATIENCE, asking).await.map_err(|_| HealthError::TimedOut(PATIENCE))?;
    let (status, body) = answer
        .map_err(|source| HealthError::Unreachable { address: format!("{host}:{port}"), source })?;
    if status.is_success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&body).trim_end().to_owned();
    Err(HealthError::NotReady { status, reason })
}
