//! The description of the file as a JSON Schema (draft 2020-12), for editors.

use serde_json::{Map, Value, json};

use super::{
    fields::FILE,
    shape::{Field, Presence, Shape},
    source::{Place, Span},
    tree::{Kind, Node, Scalar},
    units::Measure,
};

/// The JSON Schema of the file. It sees what a schema can see; `oncegate check` sees the rest.
pub fn schema() -> String {
    let mut schema = section(FILE);
    let head = [
        ("$schema", "https://json-schema.org/draft/2020-12/schema"),
        ("title", "oncegate configuration"),
        ("description", "Any value may hold `${NAME}` or `${NAME:-default}`."),
    ];
    for (key, text) in head {
        schema.insert(key.to_owned(), text.into());
    }
    format!("{:#}\n", Value::Object(schema))
}

fn section(fields: &[Field]) -> Map<String, Value> {
    let built = || fields.iter().filter(|field| !field.is_planned());
    let properties: Map<String, Value> =
        built().map(|field| (field.key.to_owned(), property(field))).collect();
    let is_mandatory = |field: &&Field| matches!(field.presence, Presence::Mandatory);
    let required: Vec<&str> = built().filter(is_mandatory).map(|field| field.key).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("additionalProperties".to_owned(), false.into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema
}

fn property(field: &Field) -> Value {
    let mut schema = shape(&field.shape);
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), field.about.into());
        if let Presence::Default(default) = field.presence {
            let default = Node::assumed(default, Span::at(Place { line: 1, column: 1 }));
            schema.insert("default".to_owned(), json_of(&default));
        }
    }
    schema
}

/// What stands in the file as JSON has it.
fn json_of(node: &Node) -> Value {
    match &node.kind {
        Kind::Scalar(_) if node.is_null() => Value::Null,
        Kind::Scalar(Scalar { written, is_plain, .. }) => {
            let is_typed = matches!(written.as_str(), "true" | "false")
                || written.bytes().all(|byte| byte.is_ascii_digit());
            let typed = serde_json::from_str(written).ok().filter(|_| *is_plain && is_typed);
            typed.unwrap_or_else(|| written.as_str().into())
        }
        Kind::Sequence(items) => items.iter().map(json_of).collect(),
        Kind::Mapping(entries) => Value::Object(
            entries.iter().map(|entry| (entry.key.clone(), json_of(&entry.value))).collect(),
        ),
        Kind::Mistaken => Value::Null,
    }
}

fn shape(shape: &Shape) -> Value {
    match shape {
        Shape::Number(Measure::Count, bounds) => json!({ "anyOf": [
            { "type": "integer", "minimum": bounds.start(), "maximum": bounds.end() },
            text(Measure::Count.pattern()),
        ] }),
        Shape::Number(measure, _) => text(measure.pattern()),
        Shape::Flag => json!({ "anyOf": [{ "type": "boolean" }, text("true|false")] }),
        Shape::Text(shape) => text(shape.pattern),
        Shape::Secret => text("[!-~]+"),
        Shape::OneOf(words) => json!({ "anyOf": [{ "enum": words }, reference()] }),
        Shape::Section(fields) => Value::Object(section(fields)),
        Shape::List(item) => json!({ "type": "array", "items": self::shape(item) }),
        Shape::Filled(item) => {
            json!({ "type": "array", "minItems": 1, "items": self::shape(item) })
        }
        Shape::Named(fields) => json!({
            "type": "object",
            "minProperties": 1,
            "additionalProperties": section(fields),
        }),
        Shape::Statuses(words) => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[2-5]([0-9][0-9]|xx)$" },
            "additionalProperties": self::shape(&Shape::OneOf(words)),
        }),
        Shape::AnyOf(shapes) => {
            json!({ "anyOf": shapes.iter().map(self::shape).collect::<Vec<_>>() })
        }
        // Planned fields are left out of their sections.
        Shape::NotBuilt(_) => json!(false),
    }
}

/// A text of this form, or one that the environment completes.
fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!(r"^({pattern})$|\$\{{") })
}

fn reference() -> Value {
    json!({ "type": "string", "pattern": r"\$\{" })
}

#[cfg(test)]
mod tests;
