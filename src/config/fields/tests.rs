//! Holds the reference for people, `docs/configuration.md`, to the description of the file.
//!
//! `UPDATE_EXPECTED=1` writes the reference anew; read the difference before it is kept.

use std::{fmt::Write, fs, path::Path};

use super::*;
use crate::config::{shape::Presence, words::one_of};

const HEAD: &str = "\
# All settings

A test writes this page from the description that the reader and `oncegate schema` use; how to start
is in the [README](../README.md#configuration). Durations are whole numbers with `ms`, `s`, `m`, `h`
or `d`; sizes with `B`, `KiB`, `MiB` or `GiB`. `${NAME}` and `${NAME:-default}` stand for values of
the environment.
";

/// The sections below `path` in the order of the file, each with its table.
fn write_section(page: &mut String, path: &str, fields: &[Field]) {
    let title = if path.is_empty() { "The file" } else { &format!("`{path}`") };
    write!(page, "\n## {title}\n\n| field | meaning | values | default |\n|---|---|---|---|\n")
        .unwrap();
    let built = || fields.iter().filter(|field| !field.is_planned());
    for Field { key, presence, shape, about } in built() {
        let default = match presence {
            Presence::Mandatory => "mandatory".to_owned(),
            Presence::Optional | Presence::Default("{}") => "–".to_owned(),
            Presence::Default(text) => format!("`{text}`"),
        };
        let row = format!("`{key}` ¦ {about} ¦ {} ¦ {default}", values(shape));
        writeln!(page, "| {} |", row.replace('|', r"\|").replace('¦', "|")).unwrap();
    }
    for field in built() {
        let dot = if path.is_empty() { "" } else { "." };
        write_below(page, &format!("{path}{dot}{}", field.key), &field.shape);
    }
}

fn write_below(page: &mut String, path: &str, shape: &Shape) {
    match shape {
        Shape::Section(fields) => write_section(page, path, fields),
        Shape::Named(fields) => write_section(page, &format!("{path}.NAME"), fields),
        Shape::List(item) | Shape::Filled(item) => write_below(page, &format!("{path}[]"), item),
        Shape::AnyOf(shapes) => shapes.iter().for_each(|shape| write_below(page, path, shape)),
        Shape::Number(..)
        | Shape::Flag
        | Shape::Text(_)
        | Shape::Secret
        | Shape::OneOf(_)
        | Shape::Statuses(_)
        | Shape::NotBuilt(_) => {}
    }
}

/// What one writes, for a cell of a table.
fn values(shape: &Shape) -> String {
    match shape {
        Shape::Number(measure, bounds) => {
            let kind = match measure {
                Measure::Duration => "duration",
                Measure::Size => "size",
                Measure::Count => "number",
            };
            format!("{kind}, {} to {}", measure.show(*bounds.start()), measure.show(*bounds.end()))
        }
        Shape::Section(_) => "block".to_owned(),
        Shape::Named(_) => "block of names, each with a block".to_owned(),
        Shape::List(item) | Shape::Filled(item) => format!("list of: {}", values(item)),
        Shape::Statuses(words) => {
            format!("`\"404\"` or `5xx`, each with {}", one_of(words, "or"))
        }
        Shape::AnyOf(shapes) => shapes.iter().map(values).collect::<Vec<_>>().join("; or "),
        Shape::Flag | Shape::Text(_) | Shape::Secret | Shape::OneOf(_) | Shape::NotBuilt(_) => {
            shape.form().trim_start_matches("write ").to_owned()
        }
    }
}

#[test]
fn the_reference_lists_every_setting_as_the_reader_knows_it() {
    let mut page = HEAD.to_owned();
    write_section(&mut page, "", FILE);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    assert!(written == page, "run this test with UPDATE_EXPECTED=1 and read the difference");
}

/// The words that `shape` itself offers, where there is a choice.
fn choices(shape: &Shape) -> Vec<&'static str> {
    match shape {
        // What has no alternative is described by its field.
        Shape::OneOf([_])
        | Shape::Number(..)
        | Shape::Flag
        | Shape::Text(_)
        | Shape::Secret
        | Shape::Section(_)
        | Shape::List(_)
        | Shape::Filled(_)
        | Shape::Named(_)
        | Shape::NotBuilt(_) => Vec::new(),
        Shape::OneOf(words) | Shape::Statuses(words) => words.to_vec(),
        Shape::AnyOf(shapes) => {
            let words = shapes.iter().filter_map(|shape| {
                if let Shape::OneOf(words) = shape { Some(*words) } else { None }
            });
            words.flatten().copied().collect()
        }
    }
}

fn each_field(fields: &'static [Field], look: &mut impl FnMut(&'static Field)) {
    for field in fields {
        look(field);
        each_below(&field.shape, look);
    }
}

fn each_below(shape: &'static Shape, look: &mut impl FnMut(&'static Field)) {
    match shape {
        Shape::Section(fields) | Shape::Named(fields) => each_field(fields, look),
        Shape::List(item) | Shape::Filled(item) => each_below(item, look),
        Shape::AnyOf(shapes) => shapes.iter().for_each(|shape| each_below(shape, look)),
        Shape::Number(..)
        | Shape::Flag
        | Shape::Text(_)
        | Shape::Secret
        | Shape::OneOf(_)
        | Shape::Statuses(_)
        | Shape::NotBuilt(_) => {}
    }
}

#[test]
fn each_word_that_can_be_chosen_is_described() {
    each_field(FILE, &mut |field| {
        for word in choices(&field.shape) {
            let (key, about) = (field.key, field.about);
            assert!(about.contains(&format!("`{word}`")), "{key}: `{word}` is not in: {about}");
        }
    });
}
