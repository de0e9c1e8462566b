//! Where an execution stands in somebody's trace.

/// A span, as W3C Trace Context names it. Kept with what was stored, so that a replay can name the
/// trace that executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
}
