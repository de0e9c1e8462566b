//! What `oncegate check` says about a file.

use std::{fmt::Display, path::Path};

use super::{Environment, Mistake, Warning, load, remark::MOST};

/// The text to print, and whether the gateway would start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every mistake, or else every warning, and a last line that sums up.
    pub text: String,
    pub passes: bool,
}

/// Reads the file at `path` as a start would, and says what is wrong with it.
pub fn check(path: &Path, environment: &dyn Environment) -> Report {
    let file = path.display();
    match load(path, environment) {
        Ok(loaded) => {
            let remarks = render_warnings(&loaded.warnings);
            let found = counted(loaded.warnings.len(), "warning");
            Report { text: format!("{remarks}{file}: passes, {found}\n"), passes: true }
        }
        Err(mistakes) => {
            let remarks = render_mistakes(&mistakes);
            let found = counted(mistakes.len(), "mistake");
            Report { text: format!("{remarks}{file}: {found}\n"), passes: false }
        }
    }
}

/// As a start prints them that goes on.
pub fn render_warnings(warnings: &[Warning]) -> String {
    lines(warnings)
}

/// As a start prints them that fails.
pub fn render_mistakes(mistakes: &[Mistake]) -> String {
    lines(mistakes)
}

fn lines(remarks: &[impl Display]) -> String {
    remarks.iter().flat_map(|remark| [remark.to_string(), "\n".to_owned()]).collect()
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        // The last one says that there are more.
        _ if count > MOST => format!("more than {MOST} {noun}s"),
        _ => format!("{count} {noun}s"),
    }
}
