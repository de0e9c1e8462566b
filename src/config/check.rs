//! Holds a tree against the description of the file: which keys, what shapes, which bounds.
//!
//! Afterwards each scalar has its references replaced, what was left out stands there with its
//! default, and what was reported is [`Kind::Mistaken`].

use std::collections::HashMap;

use super::{
    environment::{Environment, substitute},
    remark::Notes,
    shape::{Field, Presence, Shape},
    source::Span,
    tree::{Entry, Kind, Node, Scalar},
    words::{meant, one_of, quote},
};

#[derive(Clone, Copy)]
pub(super) struct Checker<'a> {
    pub(super) notes: &'a Notes<'a>,
    pub(super) environment: &'a dyn Environment,
}

/// What a mistake is about, and where to point at.
#[derive(Clone, Copy)]
struct At<'a> {
    span: Span,
    path: &'a str,
}

// === impl Checker ===

impl Checker<'_> {
    /// Checks `node`, which is the field `path`; mistakes about it as a whole point at `span`.
    pub(super) fn check(self, node: &mut Node, span: Span, path: &str, shape: &Shape) {
        if let Shape::NotBuilt(what) = shape {
            let wrong = format!("{what} is not built yet");
            return self.reject(node, At { span, path }, &wrong, "leave this field out");
        }
        if node.is_null() {
            return self.reject(node, At { span, path }, "has no value", &shape.form());
        }
        match (&mut node.kind, shape) {
            (_, Shape::AnyOf(shapes)) => self.any_of(node, span, path, shapes),
            (Kind::Mapping(entries), Shape::Section(fields)) => {
                self.section(entries, span, path, fields);
            }
            (Kind::Mapping(entries), Shape::Named(fields)) => {
                if entries.is_empty() {
                    self.notes.mistake(span, path, "is empty", "name at least one");
                }
                self.named(entries, path, &Shape::Section(fields));
            }
            (Kind::Mapping(entries), Shape::Statuses(words)) => {
                self.named(entries, path, &Shape::OneOf(words));
            }
            (Kind::Sequence(items), Shape::Filled(_)) if items.is_empty() => {
                self.reject(node, At { span, path }, "is empty", &shape.form());
            }
            (Kind::Sequence(items), Shape::List(shape) | Shape::Filled(shape)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let span = item.span;
                    self.check(item, span, &format!("{path}[{index}]"), shape);
                }
            }
            (
                Kind::Scalar(scalar),
                Shape::Number(..) | Shape::Flag | Shape::Text(_) | Shape::Secret | Shape::OneOf(_),
            ) => {
                if let Err((wrong, right)) = self.scalar(scalar, shape) {
                    self.reject(node, At { span, path }, &wrong, &right);
                }
            }
            (Kind::Mistaken, _) => {}
            (
                kind @ (Kind::Scalar(_) | Kind::Sequence(_) | Kind::Mapping(_)),
                Shape::Number(..)
                | Shape::Flag
                | Shape::Text(_)
                | Shape::Secret
                | Shape::OneOf(_)
                | Shape::Section(_)
                | Shape::List(_)
                | Shape::Filled(_)
                | Shape::Named(_)
                | Shape::Statuses(_)
                | Shape::NotBuilt(_),
            ) => {
                let wrong = format!("is {}", describe(kind));
                self.reject(node, At { span, path }, &wrong, &shape.form());
            }
        }
    }

    fn reject(self, node: &mut Node, at: At<'_>, wrong: &str, right: &str) {
        self.notes.mistake(at.span, at.path, wrong, right);
        node.kind = Kind::Mistaken;
    }

    /// A block or a list is held against the one shape of its kind; a scalar may have any.
    fn any_of(self, node: &mut Node, span: Span, path: &str, shapes: &[Shape]) {
        let fits = |shape: &&Shape| match node.kind {
            Kind::Mapping(_) => matches!(shape, Shape::Section(_)),
            Kind::Sequence(_) => matches!(shape, Shape::List(_) | Shape::Filled(_)),
            Kind::Scalar(_) | Kind::Mistaken => false,
        };
        if let Some(shape) = shapes.iter().find(fits) {
            return self.check(node, span, path, shape);
        }
        let forms: Vec<String> = shapes.iter().map(Shape::form).collect();
        let forms = forms.join(", or ");
        let Kind::Scalar(scalar) = &mut node.kind else {
            let wrong = format!("is {}", describe(&node.kind));
            return self.reject(node, At { span, path }, &wrong, &forms);
        };
        if let Err(error) = substitute(&scalar.written, self.environment) {
            return self.reject(node, At { span, path }, &error.wrong(), &error.right());
        }
        let mut mistake = (format!("{} is not known here", quote(&scalar.written)), forms.clone());
        for shape in shapes {
            match (self.scalar(scalar, shape), shape) {
                (Ok(()), _) => return,
                // What is wrong with a number says more than that it is no word.
                (Err((wrong, right)), Shape::Number(measure, _)) => {
                    let is_amount = right != measure.form();
                    mistake = (wrong, if is_amount { right } else { forms.clone() });
                }
                (Err(_), _) => {}
            }
        }
        self.reject(node, At { span, path }, &mistake.0, &mistake.1);
    }

    fn section(self, entries: &mut Vec<Entry>, span: Span, path: &str, fields: &'static [Field]) {
        self.duplicates(entries, path);
        let mut misspelled = Vec::new();
        for entry in entries.iter_mut() {
            let path = join(path, &entry.key);
            let span = entry.span();
            match fields.iter().find(|field| field.key == entry.key) {
                Some(Field { shape: shape @ Shape::NotBuilt(_), .. }) => {
                    self.check(&mut entry.value, entry.key_span, &path, shape);
                }
                Some(Field {
                    presence: Presence::Optional | Presence::Default(_), shape, ..
                }) if entry.value.is_null() => {
                    let right = format!("leave the field out, or {}", shape.form());
                    let at = At { span, path: &path };
                    self.reject(&mut entry.value, at, "has no value", &right);
                }
                Some(field) => self.check(&mut entry.value, span, &path, &field.shape),
                None => {
                    let known = fields.iter().filter(|field| !field.is_planned());
                    let known: Vec<&str> = known.map(|field| field.key).collect();
                    let meant = meant(&entry.key, &known);
                    let right = match meant {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => format!("the fields here are {}", one_of(&known, "and")),
                    };
                    misspelled.extend(meant);
                    self.notes.mistake(entry.key_span, &path, "is not a field", &right);
                }
            }
        }
        for field in fields {
            if misspelled.contains(&field.key) {
                // One mistake is one message.
                let (key, value) = (field.key.to_owned(), Node { span, kind: Kind::Mistaken });
                entries.push(Entry { key, key_span: span, value });
            } else if !entries.iter().any(|entry| entry.key == field.key) {
                entries.extend(self.left_out(field, span, path));
            }
        }
    }

    /// What stands for a field that is not written.
    fn left_out(self, field: &Field, span: Span, path: &str) -> Option<Entry> {
        let path = join(path, field.key);
        let value = match field.presence {
            Presence::Optional => return None,
            Presence::Default(text) => {
                let mut value = Node::assumed(text, span);
                self.check(&mut value, span, &path, &field.shape);
                value
            }
            Presence::Mandatory => {
                self.notes.mistake(span, &path, "is missing", &field.shape.form());
                Node { span, kind: Kind::Mistaken }
            }
        };
        Some(Entry { key: field.key.to_owned(), key_span: span, value })
    }

    fn named(self, entries: &mut Vec<Entry>, path: &str, shape: &Shape) {
        self.duplicates(entries, path);
        for entry in entries {
            let span = entry.span();
            self.check(&mut entry.value, span, &join(path, &entry.key), shape);
        }
    }

    /// Reports keys that are written twice, and keeps the first of each.
    fn duplicates(self, entries: &mut Vec<Entry>, path: &str) {
        let mut seen: HashMap<String, usize> = HashMap::new();
        entries.retain(|entry| {
            if let Some(line) = seen.get(&entry.key) {
                let (path, span) = (join(path, &entry.key), entry.key_span);
                let wrong = format!("is written twice, first in line {line}");
                self.notes.mistake(span, &path, &wrong, "keep one of them");
                return false;
            }
            seen.insert(entry.key.clone(), entry.key_span.start.line);
            true
        });
    }

    /// Replaces the references of `scalar` and holds its value against `shape`.
    fn scalar(self, scalar: &mut Scalar, shape: &Shape) -> Result<(), (String, String)> {
        scalar.value = substitute(&scalar.written, self.environment)
            .map_err(|error| (error.wrong(), error.right()))?;
        let (value, shown) = (scalar.value.as_str(), quote(&scalar.written));
        match shape {
            Shape::Number(measure, bounds) => {
                let read = measure.read(value, bounds);
                read.map(drop).map_err(|(wrong, right)| (format!("{shown} {wrong}"), right))
            }
            Shape::Flag if matches!(value, "true" | "false") => Ok(()),
            Shape::Flag => Err((format!("{shown} is not a truth value"), shape.form())),
            Shape::Text(_) if value.trim().is_empty() => Err(("is empty".to_owned(), shape.form())),
            Shape::Secret if value.is_empty() => Err(("is empty".to_owned(), shape.form())),
            Shape::Secret if !value.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(("holds a space or a character that is not ASCII".to_owned(), shape.form()))
            }
            Shape::Text(_) | Shape::Secret => Ok(()),
            Shape::OneOf(words) if words.contains(&value) => Ok(()),
            Shape::OneOf(words) => {
                let right = match meant(value, words) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => shape.form(),
                };
                Err((format!("{shown} is not known here"), right))
            }
            Shape::Section(_)
            | Shape::List(_)
            | Shape::Filled(_)
            | Shape::Named(_)
            | Shape::Statuses(_)
            | Shape::AnyOf(_)
            | Shape::NotBuilt(_) => Err((format!("{shown} is a single value"), shape.form())),
        }
    }
}

fn describe(kind: &Kind) -> &'static str {
    match kind {
        Kind::Scalar(_) => "a single value",
        Kind::Sequence(_) => "a list",
        Kind::Mapping(_) => "a block",
        Kind::Mistaken => "mistaken",
    }
}

fn join(path: &str, key: &str) -> String {
    let key = quote(key);
    let key = key.trim_matches('`');
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
