//! URL-encoded forms (`application/x-www-form-urlencoded`) as the pairs that they carry.

use std::borrow::Cow;

use http::{HeaderMap, header::CONTENT_TYPE};
use percent_encoding::percent_decode;

use super::super::digest::Digest;

/// The decoded pairs, in an order that does not depend on how a client arranges its fields.
pub(super) struct Form<'a>(Vec<Pair<'a>>);

struct Pair<'a> {
    name: Cow<'a, [u8]>,
    /// `None` without an equals sign: some upstreams read that as null, and not as empty.
    value: Option<Cow<'a, [u8]>>,
    /// How much of the name says which pairs must keep their order among each other.
    group: usize,
}

// === impl Form ===

impl<'a> Form<'a> {
    /// `None` where the request says that it is something else, or an escape is broken: what a
    /// broken one means differs from parser to parser.
    pub(super) fn read(headers: &HeaderMap, body: &'a [u8]) -> Option<Self> {
        if !headers.get_all(CONTENT_TYPE).iter().all(|line| is_form(line.as_bytes())) {
            return None;
        }
        let pairs = body.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty());
        let mut pairs = pairs.map(Pair::read).collect::<Option<Vec<_>>>()?;
        // Stable: the order among the values of one name counts.
        pairs.sort_by(|a, b| a.name[..a.group].cmp(&b.name[..b.group]));
        Some(Self(pairs))
    }

    pub(super) fn count(&self, digest: &mut Digest) {
        digest.number(self.0.len());
        for pair in &self.0 {
            digest.bytes(&pair.name);
            digest.option(pair.value.as_deref());
        }
    }
}

// === impl Pair ===

impl<'a> Pair<'a> {
    fn read(pair: &'a [u8]) -> Option<Self> {
        let equals = pair.iter().position(|&byte| byte == b'=');
        let (name, value) = match equals {
            Some(at) => (&pair[..at], Some(&pair[at + 1..])),
            None => (pair, None),
        };
        let value = match value {
            Some(value) => Some(decoded(value)?),
            None => None,
        };
        let name = decoded(name)?;
        let group = group(&name);
        Some(Self { name, value, group })
    }
}

/// Pairs whose names begin with the same group keep their order: those of one name, and those that
/// fill one list.
///
/// In `items[][id]=1&items[][count]=2&items[][id]=3` the place of the count says which item it
/// belongs to, so everything under `items[]` is one group.
fn group(name: &[u8]) -> usize {
    name.windows(2).position(|two| two == b"[]").unwrap_or(name.len())
}

fn is_form(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// To bytes and not to text: a lossy decoding would make different values equal.
fn decoded(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut escapes = text.iter().enumerate().filter(|&(_, &byte)| byte == b'%');
    let whole = |at: usize| matches!(text.get(at + 1..at + 3), Some(digits) if digits.iter().all(u8::is_ascii_hexdigit));
    if !escapes.all(|(at, _)| whole(at)) {
        return None;
    }
    if !text.contains(&b'+') {
        return Some(percent_decode(text).into());
    }
    let spaced: Vec<u8> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    Some(Cow::Owned(percent_decode(&spaced).collect()))
}
