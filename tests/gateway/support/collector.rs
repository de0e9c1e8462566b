//! A receiver of OTLP over HTTP: it keeps the spans that it gets, read with the protocol's types.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::any_value::Value,
    trace::v1::{ResourceSpans, Span},
};
use prost::Message;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use super::soon;

/// Ends with its test.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    received: Mutex<Vec<ResourceSpans>>,
    /// As they came, for what must never be in them.
    bytes: Mutex<Vec<u8>>,
    spans: watch::Sender<usize>,
}

// === impl Collector ===

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let all = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&all);
                let service = service_fn(move |request| receive(Arc::clone(&shared), request));
                let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // A gateway that ends cuts its connection off.
                tokio::spawn(async { serving.await.ok() });
            }
        });
        Self { address, shared, accepting }
    }

    /// A line of the configuration that sends spans here.
    pub(crate) fn line(&self) -> String {
        format!("tracing: {{ otlp_endpoint: 'http://{}' }}", self.address)
    }

    /// The spans, once there are so many.
    pub(crate) async fn spans(&self, count: usize) -> Vec<Span> {
        let mut spans = self.shared.spans.subscribe();
        let what = format!("{count} spans");
        soon(&what, spans.wait_for(|spans| *spans >= count)).await.unwrap();
        let received = self.shared.received.lock().unwrap();
        let scopes = received.iter().flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// What the first spans say of who sent them.
    pub(crate) fn resource(&self, name: &str) -> Option<String> {
        let received = self.shared.received.lock().unwrap();
        let resource = received.first()?.resource.as_ref()?;
        let found = resource.attributes.iter().find(|attribute| attribute.key == name)?;
        text(found.value.as_ref()?.value.as_ref()?)
    }

    pub(crate) fn has_seen(&self, words: &str) -> bool {
        let bytes = self.shared.bytes.lock().unwrap();
        bytes.windows(words.len()).any(|window| window == words.as_bytes())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn receive(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let is_right = head.method == "POST"
        && head.uri.path() == "/v1/traces"
        && head.headers["content-type"] == "application/x-protobuf";
    let Some(export) = ExportTraceServiceRequest::decode(body.clone()).ok().filter(|_| is_right)
    else {
        let mut refused = Response::new(Full::default());
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(refused);
    };
    shared.bytes.lock().unwrap().extend_from_slice(&body);
    let scopes = export.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    let count: usize = scopes.map(|scope| scope.spans.len()).sum();
    shared.received.lock().unwrap().extend(export.resource_spans);
    shared.spans.send_modify(|spans| *spans += count);
    let answer = ExportTraceServiceResponse::default().encode_to_vec();
    Ok(Response::new(Full::from(answer)))
}

/// An attribute of a span, as text.
pub(crate) fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    text(found.value.as_ref()?.value.as_ref()?)
}

fn text(value: &Value) -> Option<String> {
    if let Value::IntValue(number) = value {
        return Some(number.to_string());
    }
    if let Value::StringValue(text) = value { Some(text.clone()) } else { None }
}
