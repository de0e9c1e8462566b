//! Canonical JSON (RFC 8785), written in the same pass that reads the text.

mod number;
mod pointer;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range};

pub use self::pointer::is_json_pointer;

/// Deeper texts count raw. The walk recurses, so its depth is bounded by this and not by a client.
const MAX_DEPTH: usize = 128;

/// The canonical form of `body` without what the pointers in `ignore` name.
///
/// `None` where it is not JSON, nests deeper than [`MAX_DEPTH`], holds a lone surrogate, or names a
/// member twice in one object, since parsers disagree about which of the two counts. Numbers that a
/// double cannot hold keep their digits, see [`number`].
///
/// Not built on a tree of values: that takes many times the memory of the text, and
/// `serde_json::Value` reads an object with one certain member name as a number when numbers are
/// kept as written.
pub(super) fn canonical(body: &[u8], ignore: &[String]) -> Option<Vec<u8>> {
    let text = str::from_utf8(body).ok()?;
    let ignored: Vec<&str> = ignore.iter().map(String::as_str).collect();
    let mut walk = Walk { rest: text, canonical: Vec::with_capacity(text.len()) };
    walk.skip_space();
    walk.value(&ignored, MAX_DEPTH)?;
    walk.skip_space();
    if !walk.rest.is_empty() {
        return None;
    }
    if ignored.contains(&"") {
        walk.canonical.clear();
    }
    Some(walk.canonical)
}

/// What is left to read, and what was written of it so far.
struct Walk<'a> {
    rest: &'a str,
    canonical: Vec<u8>,
}

/// A member of an object that is being read.
struct Member<'a> {
    name: Cow<'a, str>,
    /// Where its name and value stand in the canonical text; empty when it is ignored.
    text: Range<usize>,
}

// === impl Walk ===

impl<'a> Walk<'a> {
    /// Reads one value and writes it. `ignored` are pointers relative to it, `depth` is how many
    /// levels may still open.
    fn value(&mut self, ignored: &[&str], depth: usize) -> Option<()> {
        match self.rest.as_bytes().first()? {
            b'{' => self.object(ignored, depth.checked_sub(1)?),
            b'[' => self.array(ignored, depth.checked_sub(1)?),
            b'"' => {
                let text = self.string()?;
                self.write_string(&text)
            }
            b'n' => self.literal("null"),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            _ => {
                let (number, rest) = self.rest.split_at(number::length(self.rest)?);
                self.rest = rest;
                number::write(number, &mut self.canonical);
                Some(())
            }
        }
    }

    fn array(&mut self, ignored: &[&str], depth: usize) -> Option<()> {
        self.take("[")?;
        let start = self.canonical.len();
        self.canonical.push(b'[');
        self.skip_space();
        if self.take("]").is_none() {
            for index in 0.. {
                let end = self.canonical.len();
                if end > start + 1 {
                    self.canonical.push(b',');
                }
                let below = pointer::below_index(ignored, index);
                self.skip_space();
                self.value(&below, depth)?;
                if below.contains(&"") {
                    self.canonical.truncate(end);
                }
                if !self.another("]")? {
                    break;
                }
            }
        }
        self.canonical.push(b']');
        Some(())
    }

    fn object(&mut self, ignored: &[&str], depth: usize) -> Option<()> {
        self.take("{")?;
        let start = self.canonical.len();
        self.canonical.push(b'{');
        self.skip_space();
        let mut members = Vec::new();
        if self.take("}").is_none() {
            loop {
                members.push(self.member(ignored, depth, start)?);
                if !self.another("}")? {
                    break;
                }
            }
        }
        self.sort(members, start)?;
        self.canonical.push(b'}');
        Some(())
    }

    /// Reads a member of the object that is written from `start` on.
    fn member(&mut self, ignored: &[&str], depth: usize, start: usize) -> Option<Member<'a>> {
        let end = self.canonical.len();
        if end > start + 1 {
            self.canonical.push(b',');
        }
        let begin = self.canonical.len();
        self.skip_space();
        let name = self.string()?;
        self.write_string(&name)?;
        self.skip_space();
        self.take(":")?;
        self.canonical.push(b':');
        self.skip_space();
        let below = pointer::below_name(ignored, &name);
        self.value(&below, depth)?;
        if below.contains(&"") {
            self.canonical.truncate(end);
            return Some(Member { name, text: 0..0 });
        }
        Some(Member { name, text: begin - start..self.canonical.len() - start })
    }

    /// Brings the members of the object that begins at `start` into the order of their names'
    /// UTF-16 code units (RFC 8785 section 3.2.3).
    fn sort(&mut self, mut members: Vec<Member<'a>>, start: usize) -> Option<()> {
        if members.is_sorted_by(|a, b| a.name.encode_utf16().lt(b.name.encode_utf16())) {
            return Some(());
        }
        members.sort_unstable_by(|a, b| a.name.encode_utf16().cmp(b.name.encode_utf16()));
        if members.windows(2).any(|two| two[0].name == two[1].name) {
            return None;
        }
        let unsorted = self.canonical.split_off(start);
        self.canonical.push(b'{');
        for member in members.iter().filter(|member| !member.text.is_empty()) {
            if self.canonical.len() > start + 1 {
                self.canonical.push(b',');
            }
            self.canonical.extend_from_slice(&unsorted[member.text.clone()]);
        }
        Some(())
    }

    /// Reads a string, without its quotes and escapes.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let inner = self.rest.strip_prefix('"')?;
        let mut escaped = false;
        let mut at = 0;
        loop {
            match inner.as_bytes().get(at)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    at += 2;
                }
                ..b' ' => return None,
                _ => at += 1,
            }
        }
        let (quoted, rest) = self.rest.split_at(at + 2);
        self.rest = rest;
        if escaped {
            serde_json::from_str(quoted).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(&inner[..at]))
        }
    }

    /// Writes a string as RFC 8785 section 3.2.2.2 escapes it, which is how `serde_json` does.
    fn write_string(&mut self, text: &str) -> Option<()> {
        serde_json::to_writer(&mut self.canonical, text).ok()
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        self.take(literal)?;
        self.canonical.extend_from_slice(literal.as_bytes());
        Some(())
    }

    /// Whether a comma follows, or `close` instead; anything else is an error.
    fn another(&mut self, close: &str) -> Option<bool> {
        self.skip_space();
        match self.take(",") {
            Some(()) => Some(true),
            None => self.take(close).map(|()| false),
        }
    }

    fn take(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }
}
