//! Where log lines go: JSON or text on stderr, through a writer that never blocks a request.

use std::io::{IsTerminal, Write};

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{filter::Targets, fmt::MakeWriter, layer::SubscriberExt};

use super::audit;

/// How and how much to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub format: Format,
    /// Events less important than this are not logged. The access log is at `INFO`. The audit log
    /// is written whatever this is.
    pub level: LevelFilter,
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One object a line, with an event's fields at its top level.
    #[default]
    Json,
    /// For people.
    Text,
}

/// Keeps the log written. Its drop waits, for at most about a second, until what was logged is
/// written: keep it until the process ends.
#[derive(Debug)]
#[must_use = "the log is closed when this is dropped"]
pub struct Guard {
    _worker: WorkerGuard,
    dropped: DroppedLines,
}

/// Counts the lines that were dropped since the writer could not keep up.
#[derive(Clone, Debug, Default)]
pub struct DroppedLines(Option<ErrorCounter>);

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    #[error("a log subscriber is already installed in this process")]
    AlreadyInstalled,
}

/// Lines that wait to be written at most; about 16 MiB of access log. Further ones are dropped.
const BUFFERED_LINES: usize = 65_536;

/// Starts logging. Call once per process.
pub fn init(settings: Settings) -> Result<Guard, InitError> {
    let ansi = settings.format == Format::Text && std::io::stderr().is_terminal();
    let (writer, guard) = writer(std::io::stderr(), BUFFERED_LINES);
    let dispatch = dispatch(settings, writer, ansi);
    tracing::dispatcher::set_global_default(dispatch).map_err(|_| InitError::AlreadyInstalled)?;
    Ok(guard)
}

/// A writer to `sink` that lets at most `lines` wait and drops the others.
pub(super) fn writer(sink: impl Write + Send + 'static, lines: usize) -> (NonBlocking, Guard) {
    let (writer, worker) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(lines)
        .thread_name("log")
        .finish(sink);
    let dropped = DroppedLines(Some(writer.error_counter()));
    (writer, Guard { _worker: worker, dropped })
}

pub(super) fn dispatch<W>(settings: Settings, writer: W, ansi: bool) -> tracing::Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // What an operator did is always logged.
    let levels = Targets::new()
        .with_default(settings.level)
        .with_target(audit::TARGET, settings.level.max(LevelFilter::INFO));
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(writer)
        .with_ansi(ansi);
    match settings.format {
        Format::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .finish()
            .with(levels)
            .into(),
        Format::Text => builder.finish().with(levels).into(),
    }
}

// === impl Guard ===

impl Guard {
    /// For [`install`](super::install).
    pub fn dropped_lines(&self) -> DroppedLines {
        self.dropped.clone()
    }
}

// === impl DroppedLines ===

impl DroppedLines {
    /// Since the start.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |counter| counter.dropped_lines() as u64)
    }
}
