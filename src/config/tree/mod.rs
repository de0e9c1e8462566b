//! The file as a tree in which each node knows its place.

mod builder;

use self::builder::{Broken, Builder};
use super::{
    remark::Notes,
    source::{Place, Span},
};

/// A value of the file.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    /// In file order; a key may be there twice.
    Mapping(Vec<Entry>),
    /// What stood here was reported; nobody needs to look at it again.
    Mistaken,
}

#[derive(Debug)]
pub(super) struct Scalar {
    /// Without quotes; the only form that may be shown to people.
    pub(super) written: String,
    /// With references replaced, once they are. May hold what only the environment knows.
    pub(super) value: String,
    pub(super) is_plain: bool,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Node,
}

/// Reads the one document of `text`; notes the mistake otherwise.
pub(super) fn parse(text: &str, notes: &Notes<'_>) -> Option<Node> {
    let Broken { span, wrong, right } = match Builder::new(text).document() {
        Ok(node) => return Some(node),
        Err(broken) => broken,
    };
    match tab_of_indentation(text, span) {
        Some(tab) => notes.mistake(tab, "", "a tab cannot indent in YAML", "indent with spaces"),
        None => notes.mistake(span, "", &wrong, right),
    }
    None
}

/// Tabs make for puzzling errors, a line early or late.
fn tab_of_indentation(text: &str, span: Span) -> Option<Span> {
    let around = span.start.line.saturating_sub(1)..=span.start.line + 1;
    around.into_iter().find_map(|number| {
        let line = text.split('\n').nth(number.checked_sub(1)?)?;
        let indentation = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
        let tab = indentation.enumerate().find(|(_, c)| *c == '\t')?.0;
        Some(Span::at(Place { line: number, column: tab + 1 }))
    })
}

// === impl Node ===

impl Node {
    /// A node for what is not written, at the place of what it belongs to.
    pub(super) fn assumed(text: &str, span: Span) -> Self {
        let node = Builder::new(text).document();
        match node {
            Ok(node) => Self { span, kind: node.kind },
            Err(_) => Self { span, kind: Kind::Mistaken },
        }
    }

    /// Whether nothing, or a word for nothing, stands here.
    pub(super) fn is_null(&self) -> bool {
        match &self.kind {
            Kind::Scalar(Scalar { written, is_plain, .. }) => {
                *is_plain && matches!(written.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            Kind::Sequence(_) | Kind::Mapping(_) | Kind::Mistaken => false,
        }
    }
}

// === impl Entry ===

impl Entry {
    /// Where to point at: a block says less about its place than its key does.
    pub(super) fn span(&self) -> Span {
        match &self.value.kind {
            Kind::Scalar(_) if !self.value.is_null() => self.value.span,
            Kind::Scalar(_) | Kind::Sequence(_) | Kind::Mapping(_) | Kind::Mistaken => {
                self.key_span
            }
        }
    }
}
