//! What a stored value looks like: a version byte, then a compact encoding of our own structs.
//!
//! A value with a trace has a version of its own, so that one without can be read by every build.

mod readable;
#[cfg(test)]
mod tests;
mod traced;
mod wire;

use bytes::Bytes;

pub(crate) use self::readable::{encode_readable_intent, encode_readable_record};
use crate::domain::{Intent, Origin, Record, Timestamp, TracePoint};

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

/// Of values without a summary and without a trace.
const VERSION: u8 = 1;

// === impl Stored ===

impl Stored {
    fn origin_mut(&mut self) -> &mut Origin {
        match self {
            Self::Intent { intent, .. } => &mut intent.origin,
            Self::Completed(record) => &mut record.origin,
        }
    }

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
        let summarised =
            || readable::strip(value).ok_or(DecodeError::Corrupt("its summary has no end"));
        let (trace, value) = match version {
            VERSION => (None, value),
            readable::VERSION => (None, summarised()?),
            traced::VERSION => traced::strip(value)?,
            traced::READABLE => traced::strip(summarised()?)?,
            version => return Err(DecodeError::Version(version)),
        };
        let (value, rest) = postcard::take_from_bytes::<wire::Value<'_>>(value)
            .map_err(|_malformed| DecodeError::Corrupt("it is cut or malformed"))?;
        if !rest.is_empty() {
            return Err(DecodeError::Corrupt("bytes are left over"));
        }
        let mut stored = value.into_stored(bytes)?;
        stored.origin_mut().trace = trace;
        Ok(stored)
    }
}

/// As [`Stored::Intent`], without giving the intent away.
pub(crate) fn encode_intent(intent: &Intent, ended_at: Option<Timestamp>) -> Vec<u8> {
    encode(&wire::Value::of_intent(intent, ended_at), intent.origin.trace)
}

/// As [`Stored::Completed`], without giving the record away.
pub(crate) fn encode_record(record: &Record) -> Vec<u8> {
    encode(&wire::Value::of_record(record), record.origin.trace)
}

fn encode(value: &wire::Value<'_>, trace: Option<TracePoint>) -> Vec<u8> {
    let mut bytes = vec![if trace.is_some() { traced::VERSION } else { VERSION }];
    traced::add(trace, &mut bytes);
    postcard::to_extend(value, bytes)
        .expect("a vector grows as needed, and every sequence knows its length")
}
