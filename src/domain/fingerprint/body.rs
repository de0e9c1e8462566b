//! What of a body counts, by its mode.

use http::{HeaderMap, header::CONTENT_ENCODING};

use super::{super::digest::Digest, BodyMode, form::Form, json, multipart::Multipart};

/// How a body counted in the end. Hashed before it, so that a canonical text never equals a raw
/// body of the same bytes.
#[derive(Clone, Copy)]
enum Counted {
    Nothing,
    Raw,
    Json,
    Form,
    Multipart,
}

/// Hashes what `mode` finds in the body, or all of it where `mode` cannot read it.
pub(super) fn count(digest: &mut Digest, headers: &HeaderMap, body: &[u8], mode: &BodyMode) {
    // Compressed bytes say nothing to a parser, and a bomb must not be unpacked here.
    let readable = !headers.contains_key(CONTENT_ENCODING);
    match mode {
        BodyMode::None => return digest.tag(Counted::Nothing.tag()),
        BodyMode::Json { ignore } if readable => {
            if let Some(text) = json::canonical(body, ignore) {
                digest.tag(Counted::Json.tag());
                return digest.bytes(&text);
            }
        }
        BodyMode::Form if readable => {
            if let Some(form) = Form::read(headers, body) {
                digest.tag(Counted::Form.tag());
                return form.count(digest);
            }
        }
        BodyMode::Multipart if readable => {
            if let Some(multipart) = Multipart::read(headers, body) {
                digest.tag(Counted::Multipart.tag());
                return multipart.count(digest);
            }
        }
        BodyMode::Raw | BodyMode::Json { .. } | BodyMode::Form | BodyMode::Multipart => {}
    }
    digest.tag(Counted::Raw.tag());
    digest.bytes(body);
}

// === impl Counted ===

impl Counted {
    /// Part of version 1 of the encoding: never changed.
    const fn tag(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Raw => 1,
            Self::Json => 2,
            Self::Form => 3,
            Self::Multipart => 4,
        }
    }
}
