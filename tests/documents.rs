//! Holds what is written for people to what is there: the table of answers, links and anchors.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use oncegate::gateway::problem::Code;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Everything that is written in Markdown, by its path.
fn documents() -> BTreeMap<PathBuf, String> {
    let folders = [root(), root().join("docs")];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let documents = paths.filter(|path| path.extension().is_some_and(|end| end == "md"));
    documents.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The text without fenced code, where brackets are no links and `#` begins no heading.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The texts and targets of the links of a document.
fn links(text: &str) -> Vec<(String, String)> {
    let prose = prose(text);
    let ends = prose.match_indices("](");
    ends.map(|(at, _)| {
        let label = prose[..at].rsplit('[').next().unwrap();
        let target = prose[at + 2..].split(')').next().unwrap();
        (label.to_owned(), target.to_owned())
    })
    .collect()
}

/// What a heading is linked by, as code hosts make it.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = prose(text);
    let headings = prose.lines().filter_map(|line| {
        let heading = line.trim_start_matches('#');
        heading.strip_prefix(' ').filter(|_| line.starts_with('#'))
    });
    let anchor = |heading: &str| -> String {
        let kept = heading.to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// What is wrong with a link of the document at `from`.
fn broken(from: &Path, label: &str, target: &str) -> Option<&'static str> {
    if target.starts_with("https://") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.to_owned() } else { from.parent().unwrap().join(path) };
    if path.is_dir() {
        return None;
    }
    let Ok(text) = fs::read_to_string(&path) else { return Some("there is no such file") };
    if !anchor.is_empty() && !anchors(&text).contains(anchor) {
        return Some("there is no such heading");
    }
    // A link that is labelled with a test leads to that test.
    let name = label.trim_matches('`');
    let is_test = name.len() + 2 == label.len()
        && name.matches('_').count() > 2
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_missing = is_test && !text.contains(&format!("fn {name}("));
    is_missing.then_some("there is no such test")
}

#[test]
fn each_link_leads_to_what_it_names() {
    let mut offenders = Vec::new();
    for (path, text) in documents() {
        for (label, target) in links(&text) {
            if let Some(wrong) = broken(&path, &label, &target) {
                offenders.push(format!("{}: [{label}]({target}): {wrong}", path.display()));
            }
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}

#[test]
fn the_readme_has_a_row_for_each_answer_of_the_gateway_and_no_other() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut listed = BTreeSet::new();
    for row in readme.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, status, code, retry_after, retry, new_key, _] = cells[..] else { continue };
        let Ok(status) = status.parse::<u16>() else { continue };
        let name = code.trim_matches('`');
        let code = Code::ALL.into_iter().find(|code| code.as_str() == name);
        let code = code.unwrap_or_else(|| unreachable!("there is no code {name}"));
        let word = |it| if it { "yes" } else { "no" };
        assert_eq!(status, code.status().as_u16(), "{name}");
        assert_eq!(retry, word(code.retry_same_key()), "{name}: retry same key");
        assert_eq!(new_key, word(code.is_new_key_safe()), "{name}: new key safe");
        assert_eq!(retry_after, answered_retry_after(code), "{name}: retry after");
        listed.insert(name.to_owned());
    }
    let all: BTreeSet<String> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(listed, all);
}

/// As the answer itself says it.
fn answered_retry_after(code: Code) -> String {
    use oncegate::gateway::problem::Problem;
    let problem = Problem { code, known: None, detail: "".into() };
    let response = problem.into_response();
    match response.headers().get("retry-after") {
        Some(seconds) => format!("{} s", seconds.to_str().unwrap()),
        None => "–".to_owned(),
    }
}

/// The tests above see what they look for.
#[test]
fn broken_links_are_seen() {
    let readme = root().join("README.md");
    let wrong = |label, target| broken(&readme, label, target);
    assert_eq!(wrong("map", "docs/no-such.md"), Some("there is no such file"));
    assert_eq!(wrong("map", "#no-such-heading"), Some("there is no such heading"));
    assert_eq!(wrong("run", "#run-it"), None);
    assert_eq!(
        wrong("`there_is_no_such_test`", "tests/documents.rs"),
        Some("there is no such test")
    );
    assert_eq!(wrong("`broken_links_are_seen`", "tests/documents.rs"), None);
    let found = links("a [b](c.md) and\n```\n[d](e)\n```\n[`f`](g#h)");
    let wanted = [("b", "c.md"), ("`f`", "g#h")];
    assert_eq!(found, wanted.map(|(label, target)| (label.to_owned(), target.to_owned())));
}
