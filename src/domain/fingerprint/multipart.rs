//! Multipart bodies (RFC 2046 section 5.1) as the parts that they carry, without the boundary.
//!
//! The reader is strict: whatever two parsers could see differently is not read here, and so counts
//! byte for byte. A multipart inside a part counts byte for byte, with its boundary.

use http::{HeaderMap, header::CONTENT_TYPE};

use super::super::digest::Digest;

/// The parts in their order; what stands before the first and after the last does not count.
pub(super) struct Multipart<'a> {
    /// In lower case, such as `multipart/form-data`.
    media_type: String,
    parts: Vec<Part<'a>>,
}

struct Part<'a> {
    /// Names in lower case and sorted; lines of one name keep their order.
    headers: Vec<(String, &'a [u8])>,
    body: &'a [u8],
}

/// The longest boundary that RFC 2046 allows, in bytes.
const MAX_BOUNDARY: usize = 70;

// === impl Multipart ===

impl<'a> Multipart<'a> {
    pub(super) fn read(headers: &HeaderMap, body: &'a [u8]) -> Option<Self> {
        let mut lines = headers.get_all(CONTENT_TYPE).iter();
        let (Some(content_type), None) = (lines.next(), lines.next()) else { return None };
        let (media_type, boundary) = media_type(content_type.to_str().ok()?)?;
        let dashes = format!("--{boundary}");
        let parts = parts(body, dashes.as_bytes())?;
        Some(Self { media_type, parts })
    }

    pub(super) fn count(&self, digest: &mut Digest) {
        digest.bytes(self.media_type.as_bytes());
        digest.number(self.parts.len());
        for part in &self.parts {
            digest.number(part.headers.len());
            for (name, value) in &part.headers {
                digest.bytes(name.as_bytes());
                digest.bytes(value);
            }
            digest.bytes(part.body);
        }
    }
}

// === impl Part ===

impl<'a> Part<'a> {
    fn read(part: &'a [u8]) -> Option<Self> {
        let mut headers = Vec::new();
        let mut rest = part;
        loop {
            let end = find(rest, b"\r\n")?;
            let line = &rest[..end];
            rest = &rest[end + 2..];
            if line.is_empty() {
                break;
            }
            headers.push(header(line)?);
        }
        headers.sort_by(|(a, _), (b, _)| a.cmp(b));
        Some(Self { headers, body: rest })
    }
}

/// A header line of a part. One that goes on in the next line (RFC 5322 calls it folded) is not
/// read: no client writes them, and parsers disagree about them.
fn header(line: &[u8]) -> Option<(String, &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = str::from_utf8(&line[..colon]).ok()?;
    let is_name = !name.is_empty() && name.bytes().all(is_token);
    let value = line[colon + 1..].trim_ascii();
    let is_value = value.iter().all(|&byte| byte == b'\t' || !byte.is_ascii_control());
    (is_name && is_value).then(|| (name.to_ascii_lowercase(), value))
}

/// What stands between the lines that begin with `dashes`, up to the one that closes.
fn parts<'a>(body: &'a [u8], dashes: &[u8]) -> Option<Vec<Part<'a>>> {
    let delimiter = [b"\r\n", dashes].concat();
    let mut rest = match body.strip_prefix(dashes) {
        Some(rest) => rest,
        None => &body[find(body, &delimiter)? + delimiter.len()..],
    };
    let mut parts = Vec::new();
    while let Some(part) = after_line(rest) {
        // The line break before a delimiter belongs to it, so one right here has none of its own.
        if part.starts_with(dashes) {
            return None;
        }
        let end = find(part, &delimiter)?;
        parts.push(Part::read(&part[..end])?);
        rest = &part[end + delimiter.len()..];
    }
    closes(rest).then_some(parts)
}

/// What follows the line of a delimiter, which may end in white space.
fn after_line(rest: &[u8]) -> Option<&[u8]> {
    let padding = rest.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    rest[padding..].strip_prefix(b"\r\n")
}

/// Whether the delimiter before `rest` is the closing one.
fn closes(rest: &[u8]) -> bool {
    rest.strip_prefix(b"--").is_some_and(|rest| {
        let padding = rest.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        rest.len() == padding || rest[padding..].starts_with(b"\r\n")
    })
}

/// Where `needle`, which begins with a carriage return, stands first.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        from += bytes[from..].iter().position(|&byte| byte == b'\r')?;
        if bytes[from..].starts_with(needle) {
            return Some(from);
        }
        from += 1;
    }
}

/// The media type in lower case and the boundary of a `Content-Type` (RFC 9110 section 8.3.1).
fn media_type(content_type: &str) -> Option<(String, String)> {
    let end = content_type.find(';')?;
    let media_type = content_type[..end].trim_matches([' ', '\t']).to_ascii_lowercase();
    media_type.strip_prefix("multipart/").filter(|subtype| subtype.bytes().all(is_token))?;
    let mut rest = &content_type[end..];
    let mut boundary = None;
    while let Some(after) = rest.strip_prefix(';') {
        let (name, value, after) = parameter(after)?;
        // Given twice, it depends on the parser which of the two counts.
        if name.eq_ignore_ascii_case("boundary") && boundary.replace(value).is_some() {
            return None;
        }
        rest = after.trim_start_matches([' ', '\t']);
    }
    let boundary = boundary.filter(|boundary| (1..=MAX_BOUNDARY).contains(&boundary.len()))?;
    rest.is_empty().then_some((media_type, boundary))
}

/// Name and value of the parameter at the start of `text`, and what follows it.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.trim_start_matches([' ', '\t']).split_once('=')?;
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.bytes().take_while(|&byte| is_token(byte)).count();
        return Some((name, rest[..end].to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((name, value, &quoted[at + 1..])),
            (_, '\\') => value.push(characters.next()?.1),
            (_, character) => value.push(character),
        }
    }
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
