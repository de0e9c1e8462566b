//! The words in which the file is described: a field, whether it must be there, its shape.

use std::ops::RangeInclusive;

use super::{units::Measure, words::one_of};

/// A key of a section.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: &'static str,
    pub(super) presence: Presence,
    pub(super) shape: Shape,
    /// For editors.
    pub(super) about: &'static str,
}

#[derive(Debug)]
pub(super) enum Presence {
    Mandatory,
    Optional,
    /// What is assumed, as one would write it. Each default of the file is stated once, here.
    Default(&'static str),
}

/// What a value looks like.
#[derive(Debug)]
pub(super) enum Shape {
    Number(Measure, RangeInclusive<u64>),
    Flag,
    Text(Text),
    /// Visible ASCII that is never shown.
    Secret,
    OneOf(&'static [&'static str]),
    Section(&'static [Field]),
    List(&'static Shape),
    /// A list that makes no sense without an item.
    Filled(&'static Shape),
    /// A mapping whose keys are names.
    Named(&'static [Field]),
    /// Statuses and classes of statuses, each with one of these words.
    Statuses(&'static [&'static str]),
    AnyOf(&'static [Shape]),
    /// Planned: writing it is a mistake that says so.
    NotBuilt(&'static str),
}

/// A text, and what of it a schema can see.
#[derive(Debug)]
pub(super) struct Text {
    /// A regular expression for the whole of it.
    pub(super) pattern: &'static str,
    /// What one writes.
    pub(super) form: &'static str,
}

// === impl Field ===

impl Field {
    pub(super) const fn mandatory(key: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { key, presence: Presence::Mandatory, shape, about }
    }

    pub(super) const fn optional(key: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { key, presence: Presence::Optional, shape, about }
    }

    pub(super) const fn default(
        key: &'static str,
        default: &'static str,
        shape: Shape,
        about: &'static str,
    ) -> Self {
        Self { key, presence: Presence::Default(default), shape, about }
    }

    pub(super) const fn not_built(key: &'static str, what: &'static str) -> Self {
        Self { key, presence: Presence::Optional, shape: Shape::NotBuilt(what), about: what }
    }

    /// Whether the field is only planned.
    pub(super) const fn is_planned(&self) -> bool {
        matches!(self.shape, Shape::NotBuilt(_))
    }
}

// === impl Shape ===

impl Shape {
    /// What one writes.
    pub(super) fn form(&self) -> String {
        match self {
            Self::Number(measure, _) => measure.form().to_owned(),
            Self::Flag => "write `true` or `false`".to_owned(),
            Self::Text(text) => text.form.to_owned(),
            Self::Secret => {
                "write visible ASCII characters, best 16 or more and through `${NAME}`".to_owned()
            }
            Self::OneOf(words) => format!("write {}", one_of(words, "or")),
            Self::Section(fields) => {
                let known = fields.iter().filter(|field| !field.is_planned());
                let known: Vec<&str> = known.map(|field| field.key).collect();
                format!("write a block with {}", one_of(&known, "and"))
            }
            Self::List(Self::Text(text)) | Self::Filled(Self::Text(text)) => {
                let item = text.form.trim_start_matches("write ");
                format!("write a list in `[ ]`, each item {item}")
            }
            Self::List(_) | Self::Filled(_) => "write a list of at least one".to_owned(),
            Self::Named(_) => "write a block of names, each with a block of its own".to_owned(),
            Self::Statuses(words) => {
                let words = one_of(words, "or");
                format!("write a block of statuses like `\"404\"` or `5xx`, each with {words}")
            }
            Self::AnyOf(shapes) => shapes.iter().map(Self::form).collect::<Vec<_>>().join(", or "),
            Self::NotBuilt(_) => "leave it out".to_owned(),
        }
    }
}
