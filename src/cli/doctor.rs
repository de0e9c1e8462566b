//! What `oncegate doctor` prints.

use std::path::Path;

use crate::{
    config::Warning,
    ledger::{Finding, Grade},
};

/// A line each: how good it is, what it is, and how it is.
pub(super) fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.chars().count()).max();
    let width = width.unwrap_or_default();
    let line = |Finding { grade, subject, detail }: &Finding| {
        // What a server said may have lines and colours of its own.
        let detail: String = detail.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("{grade:4}  {subject:width$}  {detail}\n")
    };
    findings.iter().map(line).collect()
}

/// Of a file that passes.
pub(super) fn configuration(file: &Path, warnings: &[Warning]) -> Finding {
    let file = file.display();
    match warnings.len() {
        0 => Finding::good("configuration", format!("{file} passes, no warnings")),
        number => {
            let s = if number == 1 { "" } else { "s" };
            let detail = format!("{file} passes, {number} warning{s}: see `oncegate check`");
            Finding::new(Grade::Doubtful, "configuration", detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_and_one_for_each_finding() {
        let findings = [
            Finding::good("root /dedup", "can be written to"),
            Finding::doubtful("clock", "30s\nbehind\u{1b}[1m"),
            Finding::bad("session", "none"),
        ];
        let expected = "ok    root /dedup  can be written to\n\
                        warn  clock        30s behind [1m\n\
                        FAIL  session      none\n";
        assert_eq!(table(&findings), expected);
    }
}
