//! What is said about the file, each thing with its place.

use std::{
    cell::{Cell, RefCell},
    fmt,
};

use super::source::{Place, Source, Span};

/// Something that keeps the gateway from starting. Prints as
/// `FILE:LINE:COL: field: what is wrong; what would be right`, the source line and carets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake(Remark);

/// Something that is allowed and that is rarely what people want. Prints like a [`Mistake`], with
/// `warning: ` before the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(Remark);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Remark {
    file: String,
    /// `None` only for a file that could not be read.
    place: Option<Place>,
    field: String,
    text: String,
    excerpt: String,
}

/// Collects mistakes while the file is read.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    source: &'a Source,
    /// At most [`MOST`].
    mistakes: RefCell<Vec<Mistake>>,
    /// The first place of a mistake that was not collected.
    more: Cell<Option<Span>>,
}

/// Remarks of a kind that are collected at most. Nobody reads more, and each costs a look at its
/// line.
pub(super) const MOST: usize = 200;

/// The field of a remark that concerns the file as a whole.
pub(super) const WHOLE_FILE: &str = "file";

// === impl Mistake ===

impl Mistake {
    /// The dotted path of the field, like `routes[0].idempotency.scope`.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// Line and column, from 1; `None` if the file could not be read at all.
    pub fn place(&self) -> Option<(usize, usize)> {
        self.0.place.map(|place| (place.line, place.column))
    }

    pub(super) fn unreadable(file: &str, error: &std::io::Error) -> Self {
        let wrong = format!("cannot be read: {error}");
        let right = "name a file that exists and that this user may read";
        Self(Remark {
            file: file.to_owned(),
            place: None,
            field: WHOLE_FILE.to_owned(),
            text: format!("{wrong}; {right}"),
            excerpt: String::new(),
        })
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, "")
    }
}

// === impl Warning ===

impl Warning {
    /// The dotted path of the field, like `routes[0].idempotency.scope`.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    pub(super) fn new(source: &Source, span: Span, field: &str, text: String) -> Self {
        Self(Remark::new(source, span, field, text))
    }

    pub(super) fn place(&self) -> Option<Place> {
        self.0.place
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, "warning: ")
    }
}

// === impl Remark ===

impl Remark {
    fn new(source: &Source, span: Span, field: &str, text: String) -> Self {
        Self {
            file: source.file().to_owned(),
            place: Some(span.start),
            field: field.to_owned(),
            text,
            excerpt: source.excerpt(span),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, kind: &str) -> fmt::Result {
        let Self { file, place, field, text, excerpt } = self;
        match place {
            Some(Place { line, column }) => {
                write!(f, "{file}:{line}:{column}: {kind}{field}: {text}\n{excerpt}")
            }
            None => write!(f, "{file}: {kind}{field}: {text}"),
        }
    }
}

// === impl Notes ===

impl<'a> Notes<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        Self { source, mistakes: RefCell::default(), more: Cell::default() }
    }

    pub(super) fn mistake(&self, span: Span, field: &str, wrong: &str, right: &str) {
        let field = if field.is_empty() { WHOLE_FILE } else { field };
        let mut mistakes = self.mistakes.borrow_mut();
        if mistakes.len() >= MOST {
            self.more.set(self.more.get().or(Some(span)));
            return;
        }
        let mistake = Mistake(Remark::new(self.source, span, field, format!("{wrong}; {right}")));
        // A value that several rules look at is reported once.
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }

    /// In the order of the file; behind many of them one that says that there are more.
    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort_by_key(|mistake| mistake.0.place);
        if let Some(span) = self.more.get() {
            let text = format!("there are more than these {MOST} mistakes; correct these first");
            mistakes.push(Mistake(Remark::new(self.source, span, WHOLE_FILE, text)));
        }
        mistakes
    }
}
