//! The trace that a value came from, before the compact value.

use super::DecodeError;
use crate::domain::TracePoint;

/// The version of values that carry a trace.
pub(super) const VERSION: u8 = 3;

/// Of those that carry a summary before it.
pub(super) const READABLE: u8 = 4;

pub(super) fn add(trace: Option<TracePoint>, bytes: &mut Vec<u8>) {
    if let Some(TracePoint { trace_id, span_id }) = trace {
        bytes.extend_from_slice(&trace_id);
        bytes.extend_from_slice(&span_id);
    }
}

/// The trace, and the compact value behind it.
pub(super) fn strip(value: &[u8]) -> Result<(Option<TracePoint>, &[u8]), DecodeError> {
    let cut = || DecodeError::Corrupt("its trace is cut");
    let (trace_id, value) = value.split_first_chunk().ok_or_else(cut)?;
    let (span_id, value) = value.split_first_chunk().ok_or_else(cut)?;
    Ok((Some(TracePoint { trace_id: *trace_id, span_id: *span_id }), value))
}
