//! Sends spans that have ended to the collector, away from every request.
//!
//! The library's own queue does not tell how many spans it drops, so there is one here.

use std::{fmt, sync::Arc, time::Duration};

use metrics::Counter;
use opentelemetry::{Context, KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Sampler, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor},
};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Tracer, collector::Collector};
use crate::telemetry::metrics::{SpansDropped, spans_dropped};

/// Where spans go.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `host:port` of a collector that takes OTLP over HTTP.
    pub collector: String,
    /// This process, with its random suffix.
    pub gateway: Arc<str>,
}

/// Keeps spans sent. Without [`flush`](Self::flush) the last ones are lost.
#[derive(Debug)]
pub struct Exporter {
    closing: CancellationToken,
    sending: JoinHandle<()>,
}

/// Spans that wait to be sent at most; about 8 MiB, more where callers send a long `tracestate`.
const MOST_QUEUED: usize = 8192;

/// Spans in one request to the collector.
const MOST_AT_ONCE: usize = 512;

/// How long the first span of a batch waits for others.
const GATHER: Duration = Duration::from_millis(200);

/// For one request to the collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// For all that is left at the end.
const FLUSH: Duration = Duration::from_secs(2);

/// Starts sending, in a task of the current runtime.
pub fn start(settings: &Settings) -> Result<(Tracer, Exporter), crate::BoxError> {
    let mut exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(Collector { authority: settings.collector.clone() })
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("http://{}/v1/traces", settings.collector))
        .with_timeout(PATIENCE)
        .build()?;
    let resource = Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", env!("CARGO_PKG_NAME")),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", settings.gateway.to_string()),
        ])
        .build();
    exporter.set_resource(&resource);
    let (sender, queue) = mpsc::channel(MOST_QUEUED);
    let dropped = spans_dropped();
    let provider = SdkTracerProvider::builder()
        .with_span_processor(Queue { sender, full: dropped.queue_full.clone() })
        // As the caller decided, and without one always.
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_resource(resource)
        .build();
    let closing = CancellationToken::new();
    let sending = tokio::spawn(send_all(queue, exporter, closing.clone(), dropped));
    // The tracer keeps its provider.
    Ok((Tracer::new(provider.tracer(env!("CARGO_PKG_NAME"))), Exporter { closing, sending }))
}

/// Takes each span as it ends.
struct Queue {
    sender: mpsc::Sender<SpanData>,
    full: Counter,
}

// === impl Exporter ===

impl Exporter {
    /// Sends what has ended so far, for two seconds at most. Spans that end later are lost.
    pub async fn flush(mut self) {
        self.closing.cancel();
        if timeout(FLUSH, &mut self.sending).await.is_err() {
            self.sending.abort();
            tracing::warn!("the last spans are lost: the collector takes too long");
        }
    }
}

// === impl Queue ===

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.sender.try_send(span).is_err() {
            self.full.increment(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("free", &self.sender.capacity()).finish_non_exhaustive()
    }
}

async fn send_all(
    mut queue: mpsc::Receiver<SpanData>,
    exporter: impl SpanExporter,
    closing: CancellationToken,
    dropped: SpansDropped,
) {
    let mut takes_them = true;
    loop {
        let batch = gather(&mut queue, &closing).await;
        if batch.is_empty() {
            return;
        }
        let spans = batch.len() as u64;
        let sent = match timeout(PATIENCE, exporter.export(batch)).await {
            Ok(sent) => sent.map_err(crate::BoxError::from),
            Err(elapsed) => Err(elapsed.into()),
        };
        // Once for each time that it goes away.
        match sent {
            Ok(()) if takes_them => {}
            Ok(()) => tracing::info!("the collector takes spans again"),
            Err(error) => {
                dropped.collector.increment(spans);
                if takes_them {
                    tracing::warn!(%error, spans, "the collector takes no spans; they are dropped");
                }
                takes_them = false;
                continue;
            }
        }
        takes_them = true;
    }
}

/// The next spans; none once all were given and it closes.
async fn gather(
    queue: &mut mpsc::Receiver<SpanData>,
    closing: &CancellationToken,
) -> Vec<SpanData> {
    let mut batch = Vec::new();
    let first = closing.run_until_cancelled(queue.recv_many(&mut batch, MOST_AT_ONCE)).await;
    if first.is_some() && batch.len() < MOST_AT_ONCE {
        closing.run_until_cancelled(sleep(GATHER)).await;
    }
    while batch.len() < MOST_AT_ONCE
        && let Ok(span) = queue.try_recv()
    {
        batch.push(span);
    }
    batch
}
