//! The schema is held to what it claims, by a validator that is not ours.

use std::{collections::BTreeMap, fs, path::Path};

use jsonschema::Validator;

use super::*;
use crate::config::{remark::Notes, source::Source, tree};

/// Broken files of `tests/config` whose mistake no schema can see.
const BEYOND: [&str; 23] = [
    "admin-without-token.yaml",
    "bodies-that-never-fit.yaml",
    "contradictions.yaml",
    "duplicate-keys.yaml",
    "environment-malformed.yaml",
    "environment-masked.yaml",
    "environment-unset.yaml",
    "headers.yaml",
    "no-embedded-block.yaml",
    "no-ledger-file.yaml",
    "no-zookeeper-block.yaml",
    "one-address-for-two.yaml",
    "one-header-for-two.yaml",
    "settle-without-sessions.yaml",
    "tracing-port.yaml",
    "warnings-of-policies.yaml",
    "warnings.yaml",
    "zookeeper-answers.yaml",
    "zookeeper-lease.yaml",
    "zookeeper-tls-names.yaml",
    "zookeeper-tls-without-key.yaml",
    "zookeeper-tls.yaml",
    "zookeeper-warnings.yaml",
];

fn validator() -> Validator {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn json(text: &str) -> Option<Value> {
    let source = Source::new("x.yaml", text);
    tree::parse(text, &Notes::new(&source)).map(|node| json_of(&node))
}

/// The files of a folder by their names.
fn files(folder: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let yaml = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let named = yaml.map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    named.collect()
}

#[test]
fn the_examples_fit_the_schema() {
    let validator = validator();
    for (name, text) in files("config") {
        let errors: Vec<_> =
            validator.iter_errors(&json(&text).unwrap()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

#[test]
fn what_a_schema_can_see_is_refused_by_it() {
    let validator = validator();
    let files = files("tests/config");
    let trees = files.iter().filter_map(|(name, text)| Some((name.as_str(), json(text)?)));
    let accepted = trees.filter(|(_, json)| validator.is_valid(json)).map(|(name, _)| name);
    assert_eq!(accepted.collect::<Vec<_>>(), BEYOND);
}

#[test]
fn each_field_has_a_description_and_defaults_are_those_of_the_reader() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let properties = &schema["properties"];

    assert_eq!(properties["drain_timeout"]["default"], "40s");
    let listen = &properties["listen"]["properties"];
    assert_eq!(listen["max_connections"]["default"], json!(10_000));
    let route = &properties["routes"]["items"]["properties"];
    let in_progress = &route["idempotency"]["properties"]["in_progress"];
    assert_eq!(in_progress["default"], json!({ "wait": "10s" }));
    for (name, field) in properties.as_object().unwrap() {
        assert!(field["description"].is_string(), "{name}");
    }
}

#[test]
fn fields_that_are_not_built_are_not_offered() {
    let schema = schema();
    for planned in ["\"http2\"", "\"health\""] {
        assert!(!schema.contains(planned), "{planned}");
    }
}
