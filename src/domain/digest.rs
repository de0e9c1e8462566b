//! One encoding for everything that is hashed: a version, then fields that say how long they are.

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};

use super::Secret;

/// SHA-256, or HMAC-SHA-256 under a secret, over fields none of which can flow into the next.
///
/// Nothing is allocated, and bytes are hashed where they lie.
pub(super) enum Digest {
    Plain(Sha256),
    Keyed(Hmac<Sha256>),
}

// === impl Digest ===

impl Digest {
    /// `label` names what is hashed and the version of its encoding, so that no two kinds of
    /// digest can equal each other.
    pub(super) fn new(secret: Option<&Secret>, label: &str) -> Self {
        let mut digest = match secret {
            None => Self::Plain(Sha256::new()),
            Some(secret) => Self::Keyed(
                Hmac::new_from_slice(secret.expose()).expect("HMAC takes a secret of any length"),
            ),
        };
        digest.bytes(label.as_bytes());
        digest
    }

    /// A field of any length.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.update(bytes);
    }

    /// A field of one byte: which of several things follows.
    pub(super) fn tag(&mut self, tag: u8) {
        self.update(&[tag]);
    }

    /// A number of fields to follow.
    pub(super) fn number(&mut self, number: usize) {
        // Eight bytes on every machine: gateways of one ledger must agree.
        self.update(&(number as u64).to_be_bytes());
    }

    /// A field that may be absent, which is not the same as empty.
    pub(super) fn option(&mut self, bytes: Option<&[u8]>) {
        self.tag(u8::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }

    /// All lines of a header, byte for byte and in their order.
    pub(super) fn lines(&mut self, headers: &HeaderMap, name: &HeaderName) {
        let lines = headers.get_all(name);
        self.bytes(name.as_str().as_bytes());
        self.number(lines.iter().count());
        for line in &lines {
            self.bytes(line.as_bytes());
        }
    }

    pub(super) fn finish(self) -> [u8; 32] {
        match self {
            Self::Plain(sha) => sha.finalize().into(),
            Self::Keyed(hmac) => hmac.finalize().into_bytes().into(),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Plain(sha) => sha.update(bytes),
            Self::Keyed(hmac) => Mac::update(hmac, bytes),
        }
    }
}
