//! How a fingerprint is computed, in a form that outlives the configuration it came from.

use http::HeaderName;
use serde::{Deserialize, Serialize};

/// How a fingerprint is computed; stored with the record, so that a retry is compared by the
/// recipe of the first request whatever the configuration says now.
///
/// Its serialised form is stored: fields keep their order, and variants of [`BodyMode`] are only
/// ever added at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Of the encoding that is hashed; [`Recipe::VERSION`] is the only one so far.
    pub version: u8,
    pub body: BodyMode,
    /// In the order of the configuration. All lines of each count, and so does having none.
    #[serde(with = "names")]
    pub headers: Vec<HeaderName>,
    /// Whether the authority counts: not where the route matches one host only.
    pub authority: bool,
}

/// What of the body counts.
///
/// A body that its mode cannot read, or that has a `Content-Encoding`, counts byte for byte. Which
/// of the two it was is part of the fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BodyMode {
    /// Byte for byte.
    #[default]
    Raw,
    /// RFC 8785 canonical form without the members at these JSON pointers (RFC 6901), whatever the
    /// `Content-Type`.
    Json { ignore: Vec<String> },
    /// Decoded pairs of a URL-encoded form; the order counts among the values of one name.
    Form,
    /// By part: a change of boundary alone is no difference.
    Multipart,
    /// The body does not count.
    None,
}

// === impl Recipe ===

impl Recipe {
    /// Of the encoding that this code computes.
    pub const VERSION: u8 = 1;
}

/// Header names as strings.
mod names {
    use http::HeaderName;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        names: &[HeaderName],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(names.iter().map(HeaderName::as_str))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<HeaderName>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.into_iter().map(|name| HeaderName::try_from(name).map_err(D::Error::custom)).collect()
    }
}

/// A recipe that many fingerprints share in memory; each stores its own.
pub(super) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Recipe;

    pub(in super::super) fn serialize<S: Serializer>(
        recipe: &Arc<Recipe>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        recipe.as_ref().serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Recipe>, D::Error> {
        Recipe::deserialize(deserializer).map(Arc::new)
    }
}
