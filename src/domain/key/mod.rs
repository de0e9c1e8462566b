//! The client's name for one operation (draft-ietf-httpapi-idempotency-key-header).

use std::fmt;

use http::{HeaderMap, HeaderName};
use sfv::{Item, Parser};
use uuid::Uuid;

#[cfg(test)]
mod tests;

/// A client-chosen key that names one logical operation; compared and hashed, never interpreted.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Box<str>);

/// What a route accepts as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRules {
    /// In bytes after unquoting; 255 unless configured, never over [`IdempotencyKey::MAX_LENGTH`].
    pub max_length: usize,
    pub format: KeyFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyFormat {
    #[default]
    Any,
    /// With hyphens, as RFC 9562 writes it. Upper and lower case are different keys.
    Uuid,
}

/// Why a header is not an idempotency key: what is wrong and where, never the value itself.
///
/// Places count bytes from 0 at the value's first byte, an opening quote included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the key is empty")]
    Empty,
    #[error("the key stands on {lines} header lines, where one is allowed")]
    Repeated { lines: usize },
    #[error("the key is {length} bytes long, where at most {max} are allowed")]
    TooLong { length: usize, max: usize },
    #[error("the key has a control character at byte {at}")]
    Control { at: usize },
    #[error("the key has a character outside ASCII at byte {at}")]
    NotAscii { at: usize },
    #[error("the key has a comma at byte {at}: it is a list, or must be written in quotes")]
    List { at: usize },
    #[error("the key has a semicolon at byte {at}: parameters are not allowed outside quotes")]
    Parameters { at: usize },
    #[error("the key has a space at byte {at}, which is allowed in quotes only")]
    Space { at: usize },
    #[error("the key has a quote at byte {at}, where none may stand")]
    Quote { at: usize },
    #[error("the key's quote is never closed")]
    Unterminated,
    #[error("the quoted key is malformed at byte {at}")]
    Malformed { at: usize },
    #[error("the key is not a UUID with hyphens")]
    NotUuid,
}

// === impl IdempotencyKey ===

impl IdempotencyKey {
    /// In bytes: no configuration allows more.
    pub const MAX_LENGTH: usize = 1024;

    /// Reads the key from the one line of `name`; `None` when there is no such line.
    ///
    /// A structured-field string (RFC 9651 section 3.3.3) and the raw token that most clients send
    /// are the same key when they are equal after unquoting.
    pub fn read(
        headers: &HeaderMap,
        name: &HeaderName,
        rules: KeyRules,
    ) -> Result<Option<Self>, KeyError> {
        let lines = headers.get_all(name);
        let Some(line) = lines.iter().next() else { return Ok(None) };
        // Which of two lines the upstream would take is anyone's guess, equal or not.
        match lines.iter().count() {
            1 => Self::parse(line.as_bytes(), rules).map(Some),
            lines => Err(KeyError::Repeated { lines }),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parse(line: &[u8], rules: KeyRules) -> Result<Self, KeyError> {
        let value = trim(line);
        let value = ascii(value)?;
        let key: Box<str> =
            if value.starts_with('"') { unquoted(value)? } else { token(value)?.into() };

        let max = rules.max_length.min(Self::MAX_LENGTH);
        match key.len() {
            0 => return Err(KeyError::Empty),
            length if length > max => return Err(KeyError::TooLong { length, max }),
            _ => {}
        }
        match rules.format {
            KeyFormat::Uuid if !is_hyphenated_uuid(&key) => Err(KeyError::NotUuid),
            KeyFormat::Any | KeyFormat::Uuid => Ok(Self(key)),
        }
    }
}

impl fmt::Debug for IdempotencyKey {
    /// Keys can carry order numbers or card tokens, so `Debug` shows only their length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey(<{} bytes>)", self.0.len())
    }
}

/// Without optional white space around it (RFC 9110 section 5.6.3).
fn trim(mut line: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = line {
        line = rest;
    }
    line
}

fn ascii(value: &[u8]) -> Result<&str, KeyError> {
    if let Some(at) = value.iter().position(u8::is_ascii_control) {
        return Err(KeyError::Control { at });
    }
    str::from_utf8(value).ok().filter(|text| text.is_ascii()).ok_or_else(|| {
        let at = value.iter().position(|byte| !byte.is_ascii()).unwrap_or_default();
        KeyError::NotAscii { at }
    })
}

/// The raw form: visible ASCII without what would make a list, parameters or a string of it.
fn token(value: &str) -> Result<&str, KeyError> {
    let wrong = value.bytes().enumerate().find_map(|(at, byte)| match byte {
        b',' => Some(KeyError::List { at }),
        b';' => Some(KeyError::Parameters { at }),
        b'"' => Some(KeyError::Quote { at }),
        b' ' => Some(KeyError::Space { at }),
        _ => None,
    });
    wrong.map_or(Ok(value), Err)
}

/// The quoted form, which may hold every printable character, a comma or a space included.
fn unquoted(value: &str) -> Result<Box<str>, KeyError> {
    let end = end_of_string(value).ok_or(KeyError::Unterminated)?;
    let (string, after) = value.split_at(end);
    let spaces = after.len() - after.trim_start_matches(' ').len();
    let at = end + spaces;
    match after.as_bytes().get(spaces) {
        None => {}
        Some(b',') => return Err(KeyError::List { at }),
        Some(b';') => return Err(KeyError::Parameters { at }),
        Some(_) => return Err(KeyError::Malformed { at }),
    }
    let item: Item = Parser::new(string)
        .parse()
        .map_err(|error| KeyError::Malformed { at: error.index().unwrap_or_default() })?;
    // What begins with a quote is a string or an error.
    item.bare_item.as_string().map(|text| text.as_str().into()).ok_or(KeyError::Malformed { at: 0 })
}

/// Where the quoted string at the start of `value` is over.
fn end_of_string(value: &str) -> Option<usize> {
    let mut bytes = value.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some(at + 1),
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    None
}

fn is_hyphenated_uuid(key: &str) -> bool {
    // Of the forms that the parser knows only the hyphenated one has this length.
    key.len() == uuid::fmt::Hyphenated::LENGTH && Uuid::try_parse(key).is_ok()
}
