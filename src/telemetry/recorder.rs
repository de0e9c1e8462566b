//! The one recorder behind all metrics, and its text for Prometheus.

use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use super::{describe, log::DroppedLines, metrics, names, process::Process};

/// Gives the text of `/metrics`. Clones give the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    handle: PrometheusHandle,
    process: Process,
    dropped: DroppedLines,
}

/// Why metrics could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("a metrics recorder is already installed in this process")]
    AlreadyInstalled,
}

/// Installs the recorder. Call once per process and before any handle is made: a handle made
/// earlier counts nothing.
pub fn install(dropped: DroppedLines) -> Result<Metrics, InstallError> {
    let recorder = recorder();
    let handle = recorder.handle();
    ::metrics::set_global_recorder(recorder).map_err(|_| InstallError::AlreadyInstalled)?;
    describe::describe();
    metrics::register();
    Ok(Metrics::new(handle, dropped))
}

pub(super) fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new()
        .set_buckets(&describe::BUCKETS)
        .expect("the list of buckets is not empty")
        .set_buckets_for_metric(
            Matcher::Full(names::ZK_OPERATION_LATENCY.to_owned()),
            &describe::MILLISECONDS,
        )
        .expect("the list of buckets is not empty")
        .build_recorder()
}

// === impl Metrics ===

impl Metrics {
    /// For a host that has installed a recorder of its own; all others call [`install`].
    pub fn new(handle: PrometheusHandle, dropped: DroppedLines) -> Self {
        Self { handle, process: Process::new(), dropped }
    }

    /// The content type of [`render`](Self::render)'s text.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// All metrics in Prometheus' text format 0.0.4.
    pub fn render(&self) -> String {
        metrics::log_lines_dropped(self.dropped.count());
        let mut text = self.handle.render();
        self.process.render(&mut text);
        text
    }

    /// Sorts the samples of histograms into their buckets.
    ///
    /// Until then each sample takes memory, so whoever installed the metrics calls this every few
    /// seconds, whether or not anybody scrapes. It takes well under a millisecond per thousand
    /// samples.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}
