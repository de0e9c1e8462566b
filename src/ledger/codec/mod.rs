//! What a stored value looks like: a version byte, then a compact encoding of our own structs.

mod readable;
#[cfg(test)]
mod tests;
mod wire;

use bytes::Bytes;

pub(crate) use self::readable::{encode_readable_intent, encode_readable_record};
use crate::domain::{Intent, Record, Timestamp};

/// What is stored for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Intent {
        intent: Intent,
        /// When the outcome became unknown; `None` while the attempt is held.
        ended_at: Option<Timestamp>,
    },
    Completed(Record),
}

/// Why stored bytes are not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("the value is empty")]
    Empty,
    #[error("version {0} of the encoding is not known here; a newer oncegate wrote it")]
    Version(u8),
    #[error("version {0} of its fingerprint is not known here; a newer oncegate wrote it")]
    Recipe(u8),
    #[error("the value is corrupt: {0}")]
    Corrupt(&'static str),
}

/// Of values without a summary.
const VERSION: u8 = 1;

// === impl Stored ===

impl Stored {
    /// The first byte is the version.
    #[cfg(test)]
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Intent { intent, ended_at } => encode_intent(intent, *ended_at),
            Self::Completed(record) => encode_record(record),
        }
    }

    /// Reads what any of the functions of this room wrote. A kept body shares the memory of `bytes`.
    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let (&version, value) = bytes.split_first().ok_or(DecodeError::Empty)?;
        let value = match version {
            VERSION => value,
            readable::VERSION => {
                readable::strip(value).ok_or(DecodeError::Corrupt("its summary has no end"))?
            }
            version => return Err(DecodeError::Version(version)),
        };
        let (value, rest) = postcard::take_from_bytes::<wire::Value<'_>>(value)
            .map_err(|_malformed| DecodeError::Corrupt("it is cut or malformed"))?;
        if !rest.is_empty() {
            return Err(DecodeError::Corrupt("bytes are left over"));
        }
        value.into_stored(bytes)
    }
}

/// As [`Stored::Intent`], without giving the intent away.
pub(crate) fn encode_intent(intent: &Intent, ended_at: Option<Timestamp>) -> Vec<u8> {
    encode(&wire::Value::of_intent(intent, ended_at))
}

/// As [`Stored::Completed`], without giving the record away.
pub(crate) fn encode_record(record: &Record) -> Vec<u8> {
    encode(&wire::Value::of_record(record))
}

fn encode(value: &wire::Value<'_>) -> Vec<u8> {
    postcard::to_extend(value, vec![VERSION])
        .expect("a vector grows as needed, and every sequence knows its length")
}
