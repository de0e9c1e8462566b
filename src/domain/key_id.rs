//! Namespace, scope and key together, hashed.

use std::{fmt, str::FromStr};

use super::{IdempotencyKey, Scope, Secret, digest::Digest};

/// SHA-256 (HMAC-SHA-256 under a secret) over length-prefixed namespace, scope values and key.
///
/// Hashing keeps callers apart from each other (P5) and any byte they send out of paths and logs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 32]);

const HEX: &[u8; 16] = b"0123456789abcdef";

// === impl KeyId ===

impl KeyId {
    const LABEL: &str = "oncegate key 1";

    /// Allocates nothing, and gives the same id on every gateway with the same secret.
    pub fn new(
        secret: Option<&Secret>,
        namespace: &str,
        scope: &Scope,
        key: &IdempotencyKey,
    ) -> Self {
        let mut digest = Digest::new(secret, Self::LABEL);
        digest.bytes(namespace.as_bytes());
        digest.bytes(scope.as_bytes());
        digest.bytes(key.as_str().as_bytes());
        Self(digest.finish())
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    /// 64 lower-case hex digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(str::from_utf8(&digits).expect("hex digits are ASCII"))
    }
}

/// This is not 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key id is 64 hex digits")]
pub struct NotKeyId;

impl FromStr for KeyId {
    type Err = NotKeyId;

    /// Reads what `Display` writes; capital digits are the same.
    fn from_str(text: &str) -> Result<Self, NotKeyId> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| NotKeyId)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(NotKeyId);
            *byte = u8::try_from(digit(0)? << 4 | digit(1)?).map_err(|_| NotKeyId)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{KeyFormat, KeyRules, ScopeRule, ScopeSource};

    const NAME: HeaderName = HeaderName::from_static("n");

    fn id(secret: Option<&[u8]>, namespace: &str, scope: &str, key: &str) -> KeyId {
        let secret = secret.map(Secret::new);
        let rule = ScopeRule { source: ScopeSource::Headers(vec![NAME]), anonymous: false };
        let one =
            |value: &str| HeaderMap::from_iter([(NAME, value.parse::<HeaderValue>().unwrap())]);
        let scope = Scope::read(&one(scope), &rule).unwrap();
        let rules = KeyRules { max_length: 255, format: KeyFormat::Any };
        let key = IdempotencyKey::read(&one(key), &NAME, rules).unwrap().unwrap();
        KeyId::new(secret.as_ref(), namespace, &scope, &key)
    }

    proptest! {
        // R59, R64, R67
        #[test]
        fn no_two_namespaces_scopes_and_keys_share_an_id(
            a in ("[ab]{0,3}", "[ab]{1,3}", "[ab]{1,3}"),
            b in ("[ab]{0,3}", "[ab]{1,3}", "[ab]{1,3}"),
        ) {
            let equal = id(None, &a.0, &a.1, &a.2) == id(None, &b.0, &b.1, &b.2);
            prop_assert_eq!(equal, a == b);
        }
    }

    #[test]
    fn the_secret_is_part_of_the_id() {
        let ids = [None, Some(&b""[..]), Some(b"a"), Some(b"b")].map(|s| id(s, "n", "s", "k"));
        assert!((1..4).all(|at| !ids[..at].contains(&ids[at])));
    }

    #[test]
    fn the_id_of_a_key_stays_the_same_from_release_to_release() {
        // Computed apart from this code, from the encoding that the digests document.
        let golden = "1a73d42dead056a4393e7fda801a6bacd919cdf3f9b3ff54f8a0601c212464c5";
        assert_eq!(id(None, "charges", "alice", "order-1").to_string(), golden);
    }

    #[test]
    fn an_id_is_shown_as_64_hex_digits() {
        assert_eq!(KeyId::from_bytes([0x0a; 32]).to_string(), "0a".repeat(32));
        assert_eq!("0A".repeat(32).parse(), Ok(KeyId::from_bytes([0x0a; 32])));
        for text in ["", "0a", &"0g".repeat(32), &"é".repeat(32), &"0a".repeat(33)] {
            assert_eq!(text.parse::<KeyId>(), Err(NotKeyId), "{text}");
        }
        assert_eq!(
            format!("{:?}", KeyId::from_bytes([0xf0; 32])),
            format!("KeyId({})", "f0".repeat(32))
        );
    }
}
