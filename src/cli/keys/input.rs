//! What the commands read beside their arguments: files, standard input, the environment.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use http::HeaderMap;
use serde_json::{Map, Value};

use super::{Failed, arguments::header, usage};
use crate::domain::Secret;

/// Bytes that are read of a file: more than any that the API takes.
const LARGEST: u64 = 1 << 20;

/// A header line each; empty lines are skipped. No error names a value.
pub(super) fn scope(file: &Path) -> Result<HeaderMap, Failed> {
    let bytes = bytes(file)?;
    let mut headers = HeaderMap::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let parsed = std::str::from_utf8(line).map_err(|_| "it is not UTF-8").and_then(header);
        let (name, mut value) = parsed
            .map_err(|wrong| usage(&format!("{}, line {number}: {wrong}", file.display())))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// The headers as the API takes them.
pub(super) fn members(scope: &HeaderMap) -> Result<Value, Failed> {
    let mut members = Map::new();
    for name in scope.keys() {
        let lines = scope.get_all(name).iter().map(|value| {
            let text = std::str::from_utf8(value.as_bytes());
            text.map(Value::from).map_err(|_| usage(&format!("the value of {name} is not UTF-8")))
        });
        members.insert(name.to_string(), lines.collect::<Result<Vec<_>, _>>()?.into());
    }
    Ok(members.into())
}

/// All of a file; `-` is standard input.
pub(super) fn bytes(file: &Path) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().take(LARGEST + 1).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|opened| opened.take(LARGEST + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| usage(&format!("could not read {}: {error}", file.display())))?;
    if bytes.len() as u64 > LARGEST {
        return Err(usage(&format!("{} is over {LARGEST} bytes", file.display())));
    }
    Ok(bytes)
}

pub(super) fn token() -> Option<Secret> {
    let token = std::env::var_os("ONCEGATE_ADMIN_TOKEN")?.into_encoded_bytes();
    (!token.is_empty()).then(|| Secret::new(token))
}

/// The name of the one who runs the command; in a container there may be a number only.
pub(super) fn user() -> String {
    let names = ["USER", "LOGNAME"].iter().filter_map(|name| std::env::var(name).ok());
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| {
        let user = rustix::process::getuid().as_raw();
        format!("uid {user}")
    })
}
