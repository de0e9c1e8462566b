//! Holds the code to the map in `src/lib.rs`: who may use whom, and where things may stand.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// A file under `src`.
struct File {
    /// Below `src`, like `gateway/proxy/mod.rs`.
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

fn sources() -> Vec<File> {
    let source = root().join("src");
    let mut files: Vec<File> = rust_files(&source)
        .into_iter()
        .map(|path| File {
            path: path.strip_prefix(&source).unwrap().to_str().unwrap().to_owned(),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(files.len() > 100, "the sources are not where they were");
    files
}

/// The rooms and their floors, as the table of `src/lib.rs` has them.
fn floors() -> BTreeMap<String, u32> {
    let map = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let rows = map.lines().filter_map(|line| line.strip_prefix("//! | "));
    rows.filter_map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let floor = cells.next()?.parse().ok()?;
        let room = cells.next()?.strip_prefix("[`")?.strip_suffix("`]")?;
        Some((room.to_owned(), floor))
    })
    .collect()
}

fn fail_with(offenders: &[String], rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

// === impl File ===

impl File {
    /// `None` for `lib.rs` and `main.rs`, which stand above all rooms.
    fn room(&self) -> Option<&str> {
        self.path.split_once('/').map(|(room, _)| room)
    }

    fn is_test(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| matches!(part, "tests" | "tests.rs" | "suite"))
    }

    /// The code without its inline tests.
    fn code(&self) -> &str {
        let end = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        &self.text[..end]
    }

    /// How many modules the file's items are below the root of the crate.
    fn depth(&self) -> usize {
        let parts = self.path.split('/').count();
        if self.path.ends_with("/mod.rs") { parts - 1 } else { parts }
    }

    /// Names right below the root of the crate that the file uses, its documentation included.
    fn uses(&self) -> BTreeSet<&str> {
        let after = self.text.match_indices("crate::").map(|(at, found)| at + found.len());
        after.flat_map(|start| heads(&self.text[start..])).collect()
    }

    /// Lines that leave the room upwards by `super::`.
    fn escapes(&self) -> Vec<&str> {
        let mut depth = self.depth();
        let mut escapes = Vec::new();
        for line in self.text.lines() {
            if line.starts_with("mod ") && line.ends_with('{') {
                depth += 1;
            } else if line == "}" {
                depth = self.depth();
            }
            let mut rest = line;
            while let Some(at) = rest.find("super::") {
                let chain = &rest[at..];
                let length = chain.split("super::").take_while(|part| part.is_empty()).count();
                if length >= depth {
                    escapes.push(line.trim());
                }
                rest = &chain[length * "super::".len()..];
            }
        }
        escapes
    }
}

/// The first names of what follows `crate::`: one, or those of a group.
fn heads(text: &str) -> Vec<&str> {
    let name = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let Some(group) = text.strip_prefix('{') else {
        return vec![&text[..name(text).unwrap_or(text.len())]];
    };
    let mut names = Vec::new();
    let (mut depth, mut at_start) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            _ if depth == 0 && at_start && !c.is_whitespace() => {
                at_start = false;
                names.push(&group[at..][..name(&group[at..]).unwrap_or(group.len() - at)]);
            }
            _ => {}
        }
    }
    names
}

#[test]
fn the_table_lists_each_room_and_no_other() {
    let listed: BTreeSet<String> = floors().into_keys().collect();
    let entries = fs::read_dir(root().join("src")).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.is_dir());
    let rooms: BTreeSet<String> =
        folders.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(listed, rooms);
}

#[test]
fn no_room_uses_one_above_or_beside_it() {
    let floors = floors();
    let mut offenders = Vec::new();
    for file in sources() {
        let Some(room) = file.room() else { continue };
        let own = floors[room];
        for used in file.uses() {
            if used != room && floors.get(used).is_some_and(|floor| *floor <= own) {
                offenders.push(format!("{}: {used} is not below {room}", file.path));
            }
        }
        let escapes = file.escapes();
        offenders.extend(escapes.iter().map(|line| format!("{}: {line}", file.path)));
    }
    fail_with(&offenders, "a room uses only the rooms below it");
}

#[test]
fn the_program_only_starts_the_command_line() {
    let main = fs::read_to_string(root().join("src/main.rs")).unwrap();
    let used: Vec<&str> = main.match_indices("oncegate::").map(|(at, _)| &main[at..]).collect();
    assert!(used.iter().all(|used| used.starts_with("oncegate::cli::")), "{main}");
}

#[test]
fn files_are_short() {
    let files = sources();
    let lines = |file: &File| file.text.lines().count();
    let long: Vec<&File> = files.iter().filter(|file| lines(file) >= 200).collect();
    let named = |file: &&File| format!("{}: {} lines", file.path, lines(file));
    let too_long: Vec<String> = long.iter().filter(|file| lines(file) >= 400).map(&named).collect();
    fail_with(&too_long, "no file has 400 lines");
    let offenders: Vec<String> = long.iter().map(named).collect();
    assert!(
        long.len() * 5 <= files.len(),
        "four of five files are under 200 lines:\n  {}",
        offenders.join("\n  ")
    );
}

#[test]
fn each_file_says_first_what_it_knows() {
    let mut offenders = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        for path in rust_files(&root().join(folder)) {
            if !fs::read_to_string(&path).unwrap().starts_with("//! ") {
                offenders.push(path.display().to_string());
            }
        }
    }
    fail_with(&offenders, "a file starts with `//!` and a sentence");
}

#[test]
fn metrics_are_named_in_one_file() {
    let mut offenders = Vec::new();
    for file in sources() {
        let is_named = ["\"oncegate_", "\"zk_"].iter().any(|name| file.code().contains(name));
        if is_named && !file.is_test() && file.path != "telemetry/names.rs" {
            offenders.push(file.path);
        }
    }
    fail_with(&offenders, "metrics are named in telemetry/names.rs only");
}

/// Statuses of upstreams are compared with and stored; only one file makes up one.
#[test]
fn statuses_of_our_own_errors_are_picked_in_one_file() {
    let harmless = ["SWITCHING_PROTOCOLS", "NO_CONTENT", "NOT_MODIFIED", "from_", "as_"];
    let mut offenders = Vec::new();
    for file in sources() {
        let is_http = matches!(file.room(), Some("gateway" | "server" | "app"));
        if !is_http || file.is_test() || file.path == "gateway/problem.rs" {
            continue;
        }
        let is_code = |line: &&str| !line.contains("==") && !line.trim_start().starts_with("//");
        for line in file.code().lines().filter(is_code) {
            let mut used = line.split("StatusCode::").skip(1);
            if used.any(|name| !harmless.iter().any(|known| name.starts_with(known))) {
                offenders.push(format!("{}: {}", file.path, line.trim()));
            }
        }
    }
    fail_with(&offenders, "statuses of errors are picked in gateway/problem.rs only");
}

#[test]
fn the_wall_clock_is_read_in_one_file() {
    let readers = sources().into_iter().filter(|file| file.text.contains("SystemTime::now"));
    let readers: Vec<String> = readers.map(|file| file.path).collect();
    assert_eq!(readers, ["domain/clock.rs"]);
}

/// The tests above see what they look for.
#[test]
fn imports_and_escapes_are_seen() {
    let text = "use crate::{\n    BoxError,\n    arbiter::{Call, Full},\n    domain,\n};\n\
                use super::super::Thing;\nfn f() { crate::config::parse() }\n";
    let file = File { path: "gateway/route.rs".into(), text: text.into() };
    let used: Vec<&str> = file.uses().into_iter().collect();
    assert_eq!(used, ["BoxError", "arbiter", "config", "domain"]);
    assert_eq!(file.escapes(), ["use super::super::Thing;"]);

    let text = "use super::Thing;\nmod tests {\n    use super::super::Thing;\n}\n";
    let file = File { path: "gateway/pool.rs".into(), text: text.into() };
    assert!(file.escapes().is_empty());
    let text = "mod tests {\n    use super::super::Thing;\n}\nuse super::super::cli;\n";
    let file = File { path: "gateway/pool.rs".into(), text: text.into() };
    assert_eq!(file.escapes(), ["use super::super::cli;"]);
    let room = File { path: "gateway/mod.rs".into(), text: "use super::cli;\n".into() };
    assert_eq!(room.escapes(), ["use super::cli;"]);
}
