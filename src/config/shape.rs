//! The words in which the file is described: a field, whether it must be there, its shape.

use std::ops::RangeInclusive;

use super::units::Measure;

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
