//! A field of a checked tree, and the ways to read it.

use std::time::Duration;

use http::HeaderName;

use crate::{
    config::{
        remark::Notes,
        source::Span,
        tree::{Kind, Node, Scalar},
        units::Measure,
        words::quote,
    },
    domain::Secret,
};

/// A field that is written or assumed. Whatever was reported before reads as `None`.
#[derive(Clone, Debug)]
pub(super) struct Value<'a> {
    node: &'a Node,
    pub(super) span: Span,
    pub(super) path: String,
    notes: &'a Notes<'a>,
}

// === impl Value ===

impl<'a> Value<'a> {
    pub(super) fn root(node: &'a Node, notes: &'a Notes<'a>) -> Self {
        Self { node, span: node.span, path: String::new(), notes }
    }

    pub(super) fn mistake(&self, wrong: &str, right: &str) {
        self.notes.mistake(self.span, &self.path, wrong, right);
    }

    /// Reports a mistake of which the value itself is the first word.
    pub(super) fn is_not<T>(&self, wrong: &str, right: &str) -> Option<T> {
        self.mistake(&format!("{} {wrong}", self.shown()), right);
        None
    }

    /// The value as it may be shown to people.
    pub(super) fn shown(&self) -> String {
        match &self.node.kind {
            Kind::Scalar(scalar) => quote(&scalar.written),
            Kind::Sequence(_) | Kind::Mapping(_) | Kind::Mistaken => "the value".to_owned(),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        self.entries().into_iter().find_map(|(name, value)| (name == key).then_some(value))
    }

    pub(super) fn entries(&self) -> Vec<(&'a str, Value<'a>)> {
        let Kind::Mapping(entries) = &self.node.kind else { return Vec::new() };
        let named = entries.iter().map(|entry| {
            let key = entry.key.as_str();
            let path =
                if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
            (key, Self { node: &entry.value, span: entry.span(), path, notes: self.notes })
        });
        named.collect()
    }

    /// The value, for remarks about its name rather than about what it holds.
    pub(super) fn named(&self, key: &str) -> Option<Value<'a>> {
        let Kind::Mapping(entries) = &self.node.kind else { return None };
        let entry = entries.iter().find(|entry| entry.key == key)?;
        let value = self.get(key)?;
        Some(Self { span: entry.key_span, ..value })
    }

    pub(super) fn items(&self) -> Vec<Value<'a>> {
        let Kind::Sequence(items) = &self.node.kind else { return Vec::new() };
        let items = items.iter().enumerate().map(|(index, node)| Self {
            node,
            span: node.span,
            path: format!("{}[{index}]", self.path),
            notes: self.notes,
        });
        items.collect()
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.node.kind, Kind::Sequence(_))
    }

    pub(super) fn is_block(&self) -> bool {
        matches!(self.node.kind, Kind::Mapping(_))
    }

    /// What the scalar means; may come from the environment, so it is not for people.
    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.node.kind {
            Kind::Scalar(Scalar { value, .. }) => Some(value),
            Kind::Sequence(_) | Kind::Mapping(_) | Kind::Mistaken => None,
        }
    }

    pub(super) fn number(&self, measure: Measure) -> Option<u64> {
        // Bounds were checked with the shape.
        measure.read(self.text()?, &(0..=u64::MAX)).ok()
    }

    pub(super) fn duration(&self, key: &str) -> Option<Duration> {
        self.get(key)?.number(Measure::Duration).map(Duration::from_millis)
    }

    pub(super) fn size(&self, key: &str) -> Option<u64> {
        self.get(key)?.number(Measure::Size)
    }

    pub(super) fn count(&self, key: &str) -> Option<usize> {
        usize::try_from(self.get(key)?.number(Measure::Count)?).ok()
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.get(key)?.text()?.parse().ok()
    }

    /// What the word at `key` stands for.
    pub(super) fn word<T: Copy>(&self, key: &str, meanings: &[(&str, T)]) -> Option<T> {
        let word = self.get(key)?.text()?;
        meanings.iter().find_map(|(name, meaning)| (*name == word).then_some(*meaning))
    }

    /// A secret that may be left out.
    pub(super) fn secret(&self, key: &str) -> Option<Secret> {
        let value = self.get(key)?;
        value.text().map(|text| Secret::new(text.as_bytes()))
    }

    pub(super) fn header(&self) -> Option<HeaderName> {
        let text = self.text()?;
        // `$` may stand in a header name (RFC 9110 section 5.6.2), and no header has one.
        if text.starts_with('$') {
            let right = "write the name itself, or `${NAME}` to take it from the environment";
            return self.is_not("is not a header name", right);
        }
        match HeaderName::from_bytes(text.as_bytes()) {
            Ok(name) => Some(name),
            Err(_) => self.is_not("is not a header name", "write a name like `X-Api-Key`"),
        }
    }

    /// The items with what each was read as. Items that are equal to an earlier one are mistakes.
    pub(super) fn each<T: PartialEq>(
        &self,
        read: impl Fn(&Value<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut all = Vec::new();
        let mut is_whole = matches!(self.node.kind, Kind::Sequence(_));
        for item in self.items() {
            match read(&item) {
                Some(value) if all.contains(&value) => {
                    item.mistake(
                        &format!("{} is in the list twice", item.shown()),
                        "keep one of them",
                    );
                    is_whole = false;
                }
                Some(value) => all.push(value),
                None => is_whole = false,
            }
        }
        is_whole.then_some(all)
    }

    /// A name of a route, an upstream or a namespace.
    pub(super) fn name(&self) -> Option<String> {
        let text = self.text()?;
        if is_name(text) { Some(text.to_owned()) } else { self.is_not("is not a name", NAME_FORM) }
    }
}

pub(super) const NAME_FORM: &str = crate::config::fields::NAME.form;

/// Names stand in metrics, logs and paths.
pub(super) fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=128).contains(&text.len())
        && text.bytes().all(is_inner)
        && text.as_bytes()[0].is_ascii_alphanumeric()
}
