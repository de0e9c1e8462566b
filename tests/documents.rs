//! Holds what is written for people to what is there: the table of answers, links and anchors, the
//! runbook's sections.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use oncegate::{gateway::problem::Code, telemetry::Outcome};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Everything that is written in Markdown, by its path.
fn documents() -> BTreeMap<PathBuf, String> {
    let folders = ["", "docs", "docs/decisions"].map(|folder| root().join(folder));
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

/// The sections of the runbook below a heading of the first level, with their texts.
fn runbook(part: &str) -> BTreeMap<String, String> {
    let text = read("docs/runbook.md");
    let parts = text.split("\n# ").find_map(|text| text.strip_prefix(&format!("{part}\n")));
    let sections = parts.unwrap().split("\n## ").skip(1);
    sections.map(|text| text.split_once('\n').unwrap()).map(owned).collect()
}

fn owned((name, text): (&str, &str)) -> (String, String) {
    (name.to_owned(), text.to_owned())
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// What stands behind each of these keys of the alert rules.
fn values(key: &str) -> Vec<String> {
    let rules = read("charts/oncegate/rules/oncegate.yaml");
    let lines = rules.lines().filter_map(|line| line.trim().strip_prefix(key));
    lines.map(|value| value.trim().to_owned()).collect()
}

#[test]
fn the_runbook_has_a_section_for_each_alert_and_each_code_and_no_other() {
    let (alerts, codes) = (runbook("Alerts"), runbook("Codes"));
    let named = values("- alert:");
    assert!(alerts.keys().eq(named.iter().collect::<BTreeSet<_>>()), "{:?}", alerts.keys());
    let all: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert!(codes.keys().eq(all.iter()), "{:?}", codes.keys());
    for (name, text) in alerts.iter().chain(&codes) {
        for part in ["What happened.", "Money at risk.", "Look at.", "Do."] {
            assert_eq!(text.matches(&format!("**{part}**")).count(), 1, "{name}: {part}");
        }
    }
}

#[test]
fn each_alert_leads_to_its_own_section_of_the_runbook() {
    let places = values("- alert:").into_iter().map(|alert| alert.to_lowercase());
    let wanted: Vec<_> = places.map(|place| format!("docs/runbook.md#{place}")).collect();
    assert_eq!(values("runbook_url:"), wanted);
    let anchors = anchors(&read("docs/runbook.md"));
    for url in wanted {
        assert!(anchors.contains(url.split_once('#').unwrap().1), "{url}");
    }
}

#[test]
fn the_runbook_asks_for_metrics_that_exist() {
    let names = read("src/telemetry/names.rs");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text = read("docs/runbook.md");
    // The servers' own counters have such names, too.
    let lines = text.lines().filter(|line| !line.contains("mntr"));
    let words = lines.flat_map(|line| line.split(|c| !is_word(c)));
    let mut asked = 0;
    for word in
        words.filter(|word| ["oncegate_", "zk_", "process_"].iter().any(|p| word.starts_with(p)))
    {
        let of_histogram = ["_bucket", "_count"].iter().find_map(|end| word.strip_suffix(end));
        let name = of_histogram.unwrap_or(word);
        assert!(
            word == "zk_" || names.contains(&format!("\"{name}\"")),
            "there is no metric {word}"
        );
        asked += 1;
    }
    assert!(asked > 50, "{asked}");
}

/// The texts between `before` and the next `after` of each place in these files.
fn between(paths: &[&str], before: &str, after: &str) -> BTreeSet<String> {
    let texts = paths.iter().map(|path| read(path).replace("\\\"", "\""));
    let found = texts.flat_map(|text| {
        let places = text.match_indices(before).map(|(at, _)| at + before.len());
        let ends = places.filter_map(|at| text[at..].split_once(after)).map(|(found, _)| found);
        ends.map(str::to_owned).collect::<Vec<_>>()
    });
    found.collect()
}

#[test]
fn queries_name_outcomes_that_exist() {
    let asking = [
        "docs/runbook.md",
        "charts/oncegate/rules/oncegate.yaml",
        "charts/oncegate/dashboards/oncegate.json",
    ];
    let mut named = between(&asking, "outcome=\"", "\"");
    let patterns = between(&asking, "outcome=~\"", "\"");
    named.extend(patterns.iter().flat_map(|pattern| pattern.split('|')).map(str::to_owned));
    let labels = Outcome::ALL.map(Outcome::label);
    let is_known = |name: &String| match name.strip_suffix(".*") {
        Some(start) => labels.iter().any(|label| label.starts_with(start)),
        None => labels.contains(&&**name),
    };
    let unknown: Vec<_> = named.iter().filter(|name| !is_known(name)).collect();
    assert!(named.len() > 15 && unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_runbook_searches_logs_for_messages_that_are_written() {
    fn sources(folder: &Path, all: &mut String) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                sources(&entry, all);
            } else if entry.extension().is_some_and(|end| end == "rs") {
                all.push_str(&fs::read_to_string(entry).unwrap());
            }
        }
    }
    let mut all = String::new();
    sources(&root().join("src"), &mut all);
    let messages = between(&["docs/runbook.md"], ".message == \"", "\"");
    assert!(messages.len() >= 2, "{messages:?}");
    for message in messages {
        assert!(all.contains(&format!("\"{message}\"")), "nothing logs {message}");
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
