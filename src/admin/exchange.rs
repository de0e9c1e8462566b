//! One request to an admin listener over a connection of its own, for the commands.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header, request::Builder};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use crate::BoxError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("{url} is not an http URL with a host; write one like http://127.0.0.1:9090")]
    Url { url: String },
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("could not ask {address}")]
    Unreachable {
        address: String,
        #[source]
        source: BoxError,
    },
}

/// For the whole exchange, and bytes of an answer that are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) patience: Duration,
    pub(super) longest_answer: usize,
}

/// Asks the admin address `url` (`http://host:port`) for `target`.
///
/// Not cancel safe for a request that changes something: it may have arrived.
pub(super) async fn exchange(
    url: &str,
    target: &str,
    request: Builder,
    body: Bytes,
    bounds: Bounds,
) -> Result<(StatusCode, Bytes), AskError> {
    let invalid = || AskError::Url { url: url.to_owned() };
    let uri: Uri = url.parse().map_err(|_| invalid())?;
    let authority = uri.authority().ok_or_else(invalid)?;
    if uri.scheme_str() != Some("http") {
        return Err(invalid());
    }
    // Brackets belong to an IPv6 address in a URL, not to the address.
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = authority.port_u16().unwrap_or(80);
    let request: Result<Request<_>, _> = request
        .uri(target)
        .header(header::HOST, authority.as_str())
        .header(header::CONNECTION, "close")
        .body(Full::new(body));

    let asking = async {
        let stream = TcpStream::connect((host, port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = request?;
        let answering = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), bounds.longest_answer).collect().await?;
            Ok::<_, BoxError>((status, body.to_bytes()))
        };
        // The answer can only come while the connection is driven; its own end tells nothing more.
        let (answer, _) = tokio::join!(answering, connection);
        answer
    };
    let answer = timeout(bounds.patience, asking).await;
    let answer = answer.map_err(|_| AskError::TimedOut(bounds.patience))?;
    answer.map_err(|source| AskError::Unreachable { address: format!("{host}:{port}"), source })
}
