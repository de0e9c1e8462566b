//! Builds the tree out of the events of the parser, and refuses what configuration needs not.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::{Entry, Kind, Node, Scalar};
use crate::config::source::{Place, Span};

/// What keeps a text from being a tree; there is only one, since all that follows is guesswork.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) span: Span,
    pub(super) wrong: String,
    pub(super) right: &'static str,
}

/// Far deeper than any configuration, far less than what a stack bears.
const MAX_DEPTH: usize = 32;

const PLAIN_WORDS: &str = "write it out where it is used";

/// Builds nodes out of events.
pub(super) struct Builder<'input> {
    parser: Parser<'input, StrInput<'input>>,
}

type Spanned<'input> = (Event<'input>, Span);

// === impl Builder ===

impl<'input> Builder<'input> {
    pub(super) fn new(text: &'input str) -> Self {
        Self { parser: Parser::new_from_str(text) }
    }

    pub(super) fn document(&mut self) -> Result<Node, Broken> {
        let node = loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                (Event::StreamEnd, span) => return Err(empty(span)),
                spanned => break self.node(spanned, 0)?,
            }
        };
        if node.is_null() {
            return Err(empty(node.span));
        }
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(node),
                (Event::DocumentStart(_), span) => {
                    return Err(Broken {
                        span,
                        wrong: "a second document starts here".to_owned(),
                        right: "write one document",
                    });
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<Spanned<'input>, Broken> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, (&span.start, &span.end).into())),
            Some(Err(error)) => Err(error.into()),
            None => Ok((Event::StreamEnd, Span::at(Place { line: 1, column: 1 }))),
        }
    }

    fn node(&mut self, (event, span): Spanned<'input>, depth: usize) -> Result<Node, Broken> {
        if depth > MAX_DEPTH {
            let wrong = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(Broken { span, wrong, right: "no field of this file is that deep" });
        }
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                plain_words(span, anchor, tag.as_deref())?;
                let is_plain = style == ScalarStyle::Plain;
                let written = value.into_owned();
                let scalar = Scalar { value: written.clone(), written, is_plain };
                Ok(Node { span, kind: Kind::Scalar(scalar) })
            }
            Event::SequenceStart(anchor, tag) => {
                plain_words(span, anchor, tag.as_deref())?;
                self.sequence(span, depth)
            }
            Event::MappingStart(anchor, tag) => {
                plain_words(span, anchor, tag.as_deref())?;
                self.mapping(span, depth)
            }
            Event::Alias(_) => Err(Broken {
                span,
                wrong: "aliases (`*name`) are not supported".to_owned(),
                right: PLAIN_WORDS,
            }),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => Err(Broken {
                span,
                wrong: "not YAML: a value is missing".to_owned(),
                right: "look at the indentation and the brackets before this place",
            }),
        }
    }

    fn sequence(&mut self, span: Span, depth: usize) -> Result<Node, Broken> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, end) => {
                    let span = Span { start: span.start, end: end.end };
                    return Ok(Node { span, kind: Kind::Sequence(items) });
                }
                item => items.push(self.node(item, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, span: Span, depth: usize) -> Result<Node, Broken> {
        let mut entries = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, end) => {
                    let span = Span { start: span.start, end: end.end };
                    return Ok(Node { span, kind: Kind::Mapping(entries) });
                }
                key => self.node(key, depth + 1)?,
            };
            let Kind::Scalar(key_scalar) = key.kind else {
                return Err(Broken {
                    span: key.span,
                    wrong: "a key must be one word".to_owned(),
                    right: "put text that holds `{`, `[` or `${` in quotes",
                });
            };
            let value = self.next()?;
            let value = self.node(value, depth + 1)?;
            entries.push(Entry { key: key_scalar.written, key_span: key.span, value });
        }
    }
}

fn empty(span: Span) -> Broken {
    Broken {
        span,
        wrong: "there is nothing in it".to_owned(),
        right: "start from `oncegate schema` or an example in `config/`",
    }
}

/// Refuses anchors, which would let a small file stand for a huge one, and tags, which would make
/// a value something else than it looks.
fn plain_words(span: Span, anchor: usize, tag: Option<&Tag>) -> Result<(), Broken> {
    if anchor != 0 {
        let wrong = "anchors (`&name`) are not supported".to_owned();
        return Err(Broken { span, wrong, right: PLAIN_WORDS });
    }
    match tag {
        Some(_) => {
            let wrong = "tags (`!name`) are not supported".to_owned();
            Err(Broken { span, wrong, right: "leave the tag out" })
        }
        None => Ok(()),
    }
}

// === impl Span ===

impl From<(&Marker, &Marker)> for Span {
    fn from((start, end): (&Marker, &Marker)) -> Self {
        Self { start: start.into(), end: end.into() }
    }
}

impl From<&Marker> for Place {
    fn from(marker: &Marker) -> Self {
        Self { line: marker.line().max(1), column: marker.col() + 1 }
    }
}

// === impl Broken ===

impl From<ScanError> for Broken {
    fn from(error: ScanError) -> Self {
        Self {
            span: Span::at(error.marker().into()),
            wrong: format!("not YAML: {}", error.info()),
            right: "look at the indentation, quotes and brackets here and just before, and for a \
                    space after each `-` and `:`",
        }
    }
}
