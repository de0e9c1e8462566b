//! The configuration file: its lines, its mistakes, and what it means.

mod check;
mod effective;
mod environment;
mod fields;
mod model;
mod reader;
mod reload;
mod remark;
mod report;
mod schema;
mod shape;
mod source;
mod tree;
mod units;
mod warnings;
mod words;

use std::{io, path::Path};

use self::{
    check::Checker,
    remark::Notes,
    shape::Shape,
    source::{Place, Source, Span},
};
pub use self::{
    environment::{Environment, ProcessEnvironment},
    model::{
        Admin, Balance, Config, Disposition, Endpoint, FingerprintRule, ForwardKey, Idempotency,
        InProgress, Ledger, LedgerKind, Limits, Listen, Log, LogFormat, LogKeys, Match,
        OnSessionLoss, Responses, Route, Storage, Tracing, UnknownOutcome, Upstream, ZooKeeper,
        ZooKeeperAuth,
    },
    remark::{Mistake, Warning},
    report::{Report, check, render_mistakes, render_warnings},
    schema::schema,
};

/// What a file without mistakes gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub config: Config,
    /// In the order of the file.
    pub warnings: Vec<Warning>,
}

/// Far more than a person writes.
const MAX_FILE: u64 = 1 << 20;

/// Reads the file at `path`.
///
/// # Errors
///
/// All mistakes at once, in the order of the file; of a file that is not YAML only the first.
/// No value that comes from the environment stands in them.
pub fn load(path: &Path, environment: &dyn Environment) -> Result<Loaded, Vec<Mistake>> {
    let file = path.display().to_string();
    let bytes = read_file(path).map_err(|error| vec![Mistake::unreadable(&file, &error)])?;
    parse(&file, &bytes, environment)
}

/// Reads a configuration out of `bytes`; `file` is what mistakes call it.
///
/// # Errors
///
/// As [`load`].
pub fn parse(
    file: &str,
    bytes: &[u8],
    environment: &dyn Environment,
) -> Result<Loaded, Vec<Mistake>> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let source = Source::new(file, &text);
    let notes = Notes::new(&source);
    if std::str::from_utf8(bytes).is_err() {
        let place = place_of_replacement(&text);
        notes.mistake(Span::at(place), "", "is not UTF-8", "save the file as UTF-8");
        return Err(notes.into_mistakes());
    }
    let Some(mut tree) = tree::parse(&text, &notes) else {
        return Err(notes.into_mistakes());
    };
    let span = tree.span;
    Checker { notes: &notes, environment }.check(
        &mut tree,
        span,
        "",
        &Shape::Section(fields::FILE),
    );
    let config = reader::read(&tree, &notes);
    let mistakes = notes.into_mistakes();
    match config {
        Some(config) if mistakes.is_empty() => {
            let warnings = warnings::of(&config, &tree, &source);
            Ok(Loaded { config, warnings })
        }
        Some(_) | None => Err(mistakes),
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut bytes = Vec::new();
    // A device or a pipe may have no size and no end.
    std::fs::File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_FILE) {
        Ok(bytes)
    } else {
        Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is over 1 MiB"))
    }
}

fn place_of_replacement(text: &str) -> Place {
    let before = text.split('\u{fffd}').next().unwrap_or_default();
    let line = before.split('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Place { line, column }
}
