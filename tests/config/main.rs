//! The mistakes that people make, and exactly what they are told: for each `*.yaml` in this folder
//! the file `*.txt` beside it.
//!
//! `UPDATE_EXPECTED=1` writes the texts anew; read the difference before it is kept.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may panic")]

#[path = "../certificates.rs"]
mod certificates;
mod meaning;
mod mutations;
mod reload;
mod support;
mod tls;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use oncegate::config::{self, Environment, ProcessEnvironment};

/// What no message may ever hold.
const HIDDEN: [&str; 2] = ["xyzzy-plugh", "open sesame"];

fn environment() -> BTreeMap<String, String> {
    let names = ["TEST_WORD", "TEST_PHRASE"];
    names.iter().map(ToString::to_string).zip(HIDDEN.map(str::to_owned)).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config")
}

fn said_about(name: &str, bytes: &[u8], environment: &dyn Environment) -> String {
    match config::parse(name, bytes, environment) {
        Ok(loaded) => config::render_warnings(&loaded.warnings),
        Err(mistakes) => config::render_mistakes(&mistakes),
    }
}

fn inputs() -> Vec<PathBuf> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    assert!(files.len() > 40, "the folder of inputs is not where it was");
    files
}

#[test]
fn each_broken_file_is_explained_word_for_word() {
    let mut different = Vec::new();
    for path in inputs() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let said = said_about(name, &fs::read(&path).unwrap(), &environment());
        let expected = path.with_extension("txt");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&expected, &said).unwrap();
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        if said.is_empty() || said != wanted {
            different.push(format!("{name} says\n{said}\nand not\n{wanted}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn no_text_is_without_its_file() {
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "txt") {
            assert!(path.with_extension("yaml").exists(), "{} has no file", path.display());
        }
    }
}

#[test]
fn nothing_that_comes_from_the_environment_or_is_secret_is_ever_said() {
    for path in inputs() {
        let said = said_about("x.yaml", &fs::read(&path).unwrap(), &environment());
        let secrets = ["s3cr3t", "s3 cr3t", "pa55word"];
        for hidden in HIDDEN.iter().chain(&secrets) {
            assert!(!said.contains(hidden), "{} gives away {hidden}:\n{said}", path.display());
        }
    }
}

#[test]
fn each_remark_has_the_form_that_editors_jump_to() {
    for path in inputs() {
        let Err(mistakes) = config::parse("x.yaml", &fs::read(&path).unwrap(), &environment())
        else {
            continue;
        };
        for mistake in mistakes {
            let said = mistake.to_string();
            let (line, column) = mistake.place().unwrap();
            let head = format!("x.yaml:{line}:{column}: {}: ", mistake.field());
            assert!(said.starts_with(&head), "{said}");
            assert!(said.lines().next().unwrap().contains("; "), "no advice in: {said}");
            assert_eq!(said.lines().count(), 3, "{said}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_mistake() {
    let missing = folder().join("no-such-file.yaml");
    let said = config::render_mistakes(&config::load(&missing, &ProcessEnvironment).unwrap_err());
    assert!(said.contains("no-such-file.yaml: file: cannot be read: "), "{said}");

    let said = config::render_mistakes(&config::load(&folder(), &ProcessEnvironment).unwrap_err());
    assert!(said.contains("cannot be read"), "{said}");
}

#[test]
fn a_file_without_an_end_is_not_read_to_the_end() {
    let endless = Path::new("/dev/zero");
    let said = config::render_mistakes(&config::load(endless, &ProcessEnvironment).unwrap_err());
    assert!(said.contains("over 1 MiB"), "{said}");
}

#[test]
fn the_examples_pass_and_are_warned_of_what_they_choose() {
    for example in fs::read_dir(folder().join("../../config")).unwrap() {
        let path = example.unwrap().path();
        if path.extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        let loaded = config::load(&path, &BTreeMap::new());
        let loaded =
            loaded.unwrap_or_else(|mistakes| panic!("{}", config::render_mistakes(&mistakes)));
        let warned: Vec<&str> = loaded.warnings.iter().map(config::Warning::field).collect();
        let expected: &[&str] = match path.file_stem().and_then(|name| name.to_str()) {
            // Its webhooks may be made twice, and it says why.
            Some("payments") => &["ledger.kind", "routes[1].idempotency.unknown_outcome"],
            // It wants credentials from the environment.
            Some("zookeeper") => &["ledger.zookeeper.auth[0].credentials"],
            // Servers on loopback for trying out: whoever reaches them may.
            Some("local-ensemble") => &["ledger.zookeeper"],
            _ => &["ledger.kind"],
        };
        assert_eq!(warned, expected, "{}", path.display());
    }
}

#[test]
fn check_sums_up_and_decides() {
    let passing = config::check(&folder().join("../../config/demo.yaml"), &BTreeMap::new());
    assert!(passing.passes);
    assert!(passing.text.ends_with("demo.yaml: passes, 1 warning\n"), "{}", passing.text);

    let failing = config::check(&folder().join("unscoped.yaml"), &BTreeMap::new());
    assert!(!failing.passes);
    assert!(failing.text.ends_with("unscoped.yaml: 1 mistake\n"), "{}", failing.text);
}

#[test]
fn of_very_many_mistakes_or_warnings_the_first_are_said_and_that_there_are_more() {
    let mut unknown = String::new();
    for number in 0..20_000 {
        writeln!(unknown, "k{number}: 1").unwrap();
    }
    let many = format!("{}{unknown}", support::SMALLEST);
    let mistakes = config::parse("x.yaml", many.as_bytes(), &BTreeMap::new()).unwrap_err();
    assert_eq!(mistakes.len(), 201);
    assert_eq!(mistakes[0].field(), "k0");
    let last = mistakes[200].to_string();
    assert!(last.contains("more than these 200 mistakes; "), "{last}");

    let unused = |number| format!("  u{number}: {{ endpoints: ['http://127.0.0.1'] }}\n");
    let unused: String = (0..2_000).map(unused).collect();
    let many = support::SMALLEST.replace("routes:", &format!("{unused}routes:"));
    let warnings = config::parse("x.yaml", many.as_bytes(), &BTreeMap::new()).unwrap().warnings;
    assert_eq!(warnings.len(), 201);
    assert!(warnings[0].to_string().contains("more than 200 warnings; "), "{}", warnings[0]);
}

/// R59: without a scope, one caller would get the answers of another.
#[test]
fn a_keyed_route_that_does_not_say_whose_keys_are_whose_does_not_start() {
    let unscoped = support::SMALLEST.replace("scope: [X-Api-Key]", "");
    let mistakes = config::parse("x.yaml", unscoped.as_bytes(), &BTreeMap::new()).unwrap_err();
    let fields: Vec<&str> = mistakes.iter().map(config::Mistake::field).collect();
    assert_eq!(fields, ["routes[0].idempotency.scope"]);
}
