//! The text of the file by lines and columns, with what is secret in it masked.

use std::ops::Range;

use super::words::meant;

/// A character of the file; both numbers start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// From a character to just before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: Place,
    pub(super) end: Place,
}

/// A file, ready to be quoted.
#[derive(Debug)]
pub(super) struct Source {
    file: String,
    lines: Vec<String>,
}

/// Keys whose values are never quoted, nor those of keys that look like them or hold one of them.
const SECRET_KEYS: [&str; 6] = ["token", "key_secret", "secret", "credentials", "password", "auth"];

/// Characters of a line that are shown at most.
const EXCERPT: usize = 120;

// === impl Span ===

impl Span {
    pub(super) fn at(place: Place) -> Self {
        Self { start: place, end: place }
    }
}

// === impl Source ===

impl Source {
    /// `text` has line feeds only.
    pub(super) fn new(file: &str, text: &str) -> Self {
        let mut lines = Vec::new();
        // How far the key is indented whose value goes on: a text, a list or a block.
        let mut secret: Option<usize> = None;
        for line in text.split('\n') {
            secret = secret.filter(|&key| line.trim().is_empty() || is_below(line, key));
            let (masked, key) = mask(line, secret.is_some());
            secret = secret.or(key);
            lines.push(masked);
        }
        Self { file: file.to_owned(), lines }
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// The line on which `span` starts, and a line with carets below it.
    pub(super) fn excerpt(&self, span: Span) -> String {
        let Place { line: number, column } = span.start;
        let line: Vec<char> = match number.checked_sub(1).and_then(|index| self.lines.get(index)) {
            Some(line) => line.chars().map(printable).collect(),
            None => Vec::new(),
        };
        let start = column.saturating_sub(1).min(line.len());
        let end = if span.end.line == number {
            span.end.column.saturating_sub(1).clamp(start, line.len())
        } else {
            line.iter().rposition(|c| !c.is_whitespace()).map_or(start, |last| last + 1)
        };
        let shown = window(line.len(), start);
        let text: String = line[shown.clone()].iter().collect();
        let carets = "^".repeat(end.min(shown.end).saturating_sub(start).max(1));
        let margin = number.to_string();
        let (blank, indent) = (" ".repeat(margin.len()), " ".repeat(start - shown.start));
        format!(" {margin} | {}\n {blank} | {indent}{carets}", text.trim_end())
    }
}

/// The part of a long line around `start`.
fn window(length: usize, start: usize) -> Range<usize> {
    let from = if length <= EXCERPT { 0 } else { start.saturating_sub(EXCERPT / 3) };
    from..length.min(from + EXCERPT)
}

/// One column wide, whatever it is.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// Whether `line` belongs to the value of a key that is indented by `key`. The items of a list may
/// stand below the first letter of its key.
fn is_below(line: &str, key: usize) -> bool {
    let text = line.trim_start();
    let indentation = line.len() - text.len();
    indentation > key || (indentation == key && text.starts_with("- "))
}

/// Stars for what may be secret, one for each character so that columns stay; and how far the key
/// is indented whose value may go on below.
fn mask(line: &str, is_secret: bool) -> (String, Option<usize>) {
    let chars: Vec<char> = line.chars().collect();
    let mut hidden = vec![is_secret; chars.len()];
    let mut below = None;
    for at in 0..chars.len() {
        if let Some(value) = secret_value(&chars, at) {
            hidden[value].fill(true);
            below = below.or(Some(indentation(&chars, at)));
        }
        hidden[user_information(&chars, at)].fill(true);
    }
    let masked = chars.iter().zip(hidden).map(|(&c, hidden)| match c {
        c if hidden && !c.is_whitespace() => '*',
        c => c,
    });
    (masked.collect(), below)
}

/// Where a block starts in which the key at `at` stands: behind the dashes of lists if it is the
/// first of its line, else where the line does.
fn indentation(chars: &[char], at: usize) -> usize {
    let is_lead = |c: &char| matches!(c, ' ' | '\t' | '-' | '"' | '\'' | '?');
    let lead = chars.iter().take_while(|c| is_lead(c)).count();
    let spaces = chars.iter().take_while(|c| c.is_whitespace()).count();
    let quotes = chars[..at].iter().rev().take_while(|c| matches!(c, '"' | '\'')).count();
    if lead == at { at - quotes } else { spaces }
}

/// Where the value stands on the line if a secret's key starts at `at`.
/// A reference to the environment is no secret. Rather too much is masked than too little: up to
/// the end of the line.
fn secret_value(chars: &[char], at: usize) -> Option<Range<usize>> {
    let is_inner = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let before = &chars[..at];
    if before.last().is_some_and(is_inner) || before.ends_with(&['$', '{']) {
        return None;
    }
    let length = chars[at..].iter().take_while(|c| is_inner(c)).count();
    let colon = skip_quotes(chars, at + length);
    if chars.get(colon) != Some(&':') {
        return None;
    }
    let key: String = chars[at..at + length].iter().collect();
    if !looks_secret(&key) {
        return None;
    }
    let value = skip_quotes(chars, colon + 1);
    if chars[value..].starts_with(&['$', '{']) {
        return Some(reference_default(chars, value));
    }
    // What announces a text below is none itself.
    let announces = chars.get(value).is_some_and(|c| matches!(c, '|' | '>' | '#'));
    Some(value..if announces { value } else { chars.len() })
}

/// What is written in place of a secret's key holds a secret all the same.
fn looks_secret(key: &str) -> bool {
    let key = key.trim_start_matches('-').to_lowercase();
    meant(&key, &SECRET_KEYS).is_some()
        || key.split(['_', '-']).any(|part| SECRET_KEYS.contains(&part))
        || ["secret", "token", "password", "credential"].iter().any(|word| key.contains(word))
}

fn skip_quotes(chars: &[char], from: usize) -> usize {
    let is_skipped = |c: &char| matches!(c, '"' | '\'' | ' ' | '\t');
    from + chars[from..].iter().take_while(|c| is_skipped(c)).count()
}

/// What follows the `:-` of a reference is written in the file, and as secret as any value.
fn reference_default(chars: &[char], at: usize) -> Range<usize> {
    let close = chars[at..].iter().position(|&c| c == '}').map_or(chars.len(), |end| at + end);
    let dash = (at..close).find(|&index| chars[index..].starts_with(&[':', '-']));
    dash.map_or(at..at, |dash| dash + 2..close)
}

/// `user:password` of a URL whose `//` starts at `at`.
fn user_information(chars: &[char], at: usize) -> Range<usize> {
    if !chars[at..].starts_with(&['/', '/']) {
        return at..at;
    }
    let ends = |c: &char| c.is_whitespace() || matches!(c, '/' | ',' | '"' | '\'' | ']');
    let from = at + 2;
    let length = chars[from..].iter().position(ends).unwrap_or(chars.len() - from);
    match chars[from..from + length].iter().rposition(|&c| c == '@') {
        Some(end) => from..from + end,
        None => at..at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        Source::new("x.yaml", text).lines
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        assert_eq!(shown("admin: { token: abc def, a: b }"), ["admin: { token: *** **** ** * *"]);
        assert_eq!(shown("\"key_secret\" : \"ab\""), ["\"key_secret\" : \"***"]);
        assert_eq!(shown("tokne: ab"), ["tokne: **"]);
        assert_eq!(shown("token:\n\n  ab\nlog: x"), ["token:", "", "  **", "log: x"]);
        assert_eq!(shown("token: |\n  ab\n\n  c: d"), ["token: |", "  **", "", "  ** *"]);
        assert_eq!(shown("token: \"a\n  b\"\nc: d"), ["token: \"*", "  **", "c: d"]);
        assert_eq!(shown("- http://me:pw@host/a@b"), ["- http://*****@host/a@b"]);
    }

    #[test]
    fn all_that_stands_in_a_block_of_secrets_is_masked_whatever_its_shape() {
        assert_eq!(shown("-token: x").concat(), "-token: *");
        assert_eq!(shown("auth: [digest:me:pw]\na: b"), ["auth: **************", "a: b"]);
        assert_eq!(shown("auth:\n- me:pw\n- x\na: b"), ["auth:", "* *****", "* *", "a: b"]);
        assert_eq!(
            shown("zk:\n  auth:\n    me: pw\n  a: b"),
            ["zk:", "  auth:", "    *** **", "  a: b"]
        );
        assert_eq!(
            shown("- zk_auth: { me: pw,\n    x }\n  a: b"),
            ["- zk_auth: * *** ***", "    * *", "  a: b"]
        );
        assert_eq!(shown("a: { apiToken: x,\n  y }\nb: c"), ["a: { apiToken: **", "  * *", "b: c"]);
        assert_eq!(shown("- token: ab\n  a: b\n- c"), ["- token: **", "  a: b", "- c"]);
    }

    #[test]
    fn references_and_other_fields_are_shown() {
        for text in ["token: ${TOKEN}", "max_length: 5", "a: http://host/x", "- name: x"] {
            assert_eq!(shown(text), [text]);
        }
        assert_eq!(shown("token: ${TOKEN:-ab}"), ["token: ${TOKEN:-**}"]);
    }

    #[test]
    fn carets_stand_below_what_is_meant_also_in_long_lines() {
        let source =
            Source::new("x.yaml", &format!("{}é: \t🦀{}", "a".repeat(300), "b".repeat(300)));
        let place = |column| Place { line: 1, column };
        let excerpt = source.excerpt(Span { start: place(305), end: place(306) });
        let lines: Vec<Vec<char>> = excerpt.lines().map(|line| line.chars().collect()).collect();
        let caret = lines[1].iter().position(|&c| c == '^').unwrap();
        assert_eq!(lines[0][caret], '🦀');
        assert!(lines[0].len() < 130);
    }

    #[test]
    fn a_place_outside_of_the_file_can_be_shown() {
        let source = Source::new("x.yaml", "a: b");
        for (line, column) in [(0, 0), (1, 99), (7, 1)] {
            let excerpt = source.excerpt(Span::at(Place { line, column }));
            assert_eq!(excerpt.lines().count(), 2);
        }
    }
}
