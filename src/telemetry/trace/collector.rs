//! The way to a collector: one HTTP/1.1 request on a connection of its own.
//!
//! The library's own client would bring HTTP/2 with it.

use std::{future::Future, pin::Pin};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header::HOST};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(super) struct Collector {
    /// `host:port`.
    pub(super) authority: String,
}

/// Of an answer, which says little.
const MOST_BYTES: usize = 64 * 1024;

impl HttpClient for Collector {
    fn send_bytes<'client, 'sending>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sending>>
    where
        'client: 'sending,
        Self: 'sending,
    {
        Box::pin(self.send(request))
    }
}

// === impl Collector ===

impl Collector {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let stream = TcpStream::connect(&self.authority).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        if let Some(target) = request.uri().path_and_query() {
            *request.uri_mut() = Uri::from(target.clone());
        }
        request.headers_mut().insert(HOST, HeaderValue::from_str(&self.authority)?);
        let exchange = async {
            let response = sender.send_request(request.map(Full::new)).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MOST_BYTES).collect().await?.to_bytes();
            Ok(Response::from_parts(parts, body))
        };
        tokio::select! {
            answered = exchange => answered,
            ended = connection => Err(ended.err().map_or("the connection ended".into(), Into::into)),
        }
    }
}
