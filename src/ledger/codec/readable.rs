//! A line of JSON before the compact value, for people who look at a node with other tools.

use serde::Serialize;

use super::{traced, wire};
use crate::domain::{Intent, Record, Timestamp, TracePoint};

/// The version of values that carry a summary.
pub(super) const VERSION: u8 = 2;

/// Says where the summary ends: JSON has no raw line feed within a line.
const END: u8 = b'\n';

#[derive(Serialize)]
struct Summary<'a> {
    state: &'static str,
    attempt: u32,
    attempt_id: String,
    gateway: &'a str,
    route: &'a str,
    request_id: &'a str,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

/// As [`encode_intent`](super::encode_intent), with a summary.
pub(crate) fn encode_readable_intent(intent: &Intent, ended_at: Option<Timestamp>) -> Vec<u8> {
    let summary = Summary {
        state: if ended_at.is_some() { "unknown" } else { "intent" },
        attempt: intent.attempt,
        attempt_id: intent.attempt_id.to_string(),
        gateway: &intent.origin.gateway,
        route: &intent.origin.route,
        request_id: &intent.origin.request_id,
        time: ended_at.unwrap_or(intent.begun_at).to_string(),
        cause: intent.cause.map(|cause| cause.to_string()),
        status: None,
    };
    encode(&summary, &wire::Value::of_intent(intent, ended_at), intent.origin.trace)
}

/// As [`encode_record`](super::encode_record), with a summary.
pub(crate) fn encode_readable_record(record: &Record) -> Vec<u8> {
    let summary = Summary {
        state: "completed",
        attempt: record.attempt,
        attempt_id: record.attempt_id.to_string(),
        gateway: &record.origin.gateway,
        route: &record.origin.route,
        request_id: &record.origin.request_id,
        time: record.completed_at.to_string(),
        cause: None,
        status: Some(record.response.status.as_u16()),
    };
    encode(&summary, &wire::Value::of_record(record), record.origin.trace)
}

fn encode(summary: &Summary<'_>, value: &wire::Value<'_>, trace: Option<TracePoint>) -> Vec<u8> {
    let mut bytes = vec![if trace.is_some() { traced::READABLE } else { VERSION }];
    serde_json::to_writer(&mut bytes, summary).expect("a vector takes all, and the keys are text");
    bytes.push(END);
    traced::add(trace, &mut bytes);
    postcard::to_extend(value, bytes)
        .expect("a vector grows as needed, and every sequence knows its length")
}

/// The compact value behind the summary.
pub(super) fn strip(value: &[u8]) -> Option<&[u8]> {
    let end = value.iter().position(|byte| *byte == END)?;
    value.get(end + 1..)
}
