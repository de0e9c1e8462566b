//! What stands in the nodes.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    domain::{AttemptId, Cause, FencingToken, Fingerprint, Intent, Record, Timestamp},
    ledger::{
        codec::{Stored, encode_readable_intent, encode_readable_record},
        suite::requests::{answer, request},
    },
};

fn intent() -> Intent {
    let request = request(1);
    Intent {
        attempt_id: AttemptId::random(),
        attempt: 2,
        token: FencingToken::new(7),
        may_have_run: true,
        fingerprint: Fingerprint {
            recipe: Arc::clone(&request.fingerprint.recipe),
            digest: [9; 32],
        },
        retention: request.retention,
        origin: request.origin,
        begun_at: Timestamp::from_millis(5),
        cause: Some(Cause::Status(500)),
    }
}

#[test]
fn a_value_starts_with_its_version_and_a_line_that_people_can_read() {
    let intent = intent();
    let record = Record {
        attempt_id: intent.attempt_id,
        attempt: 1,
        token: FencingToken::new(7),
        fingerprint: intent.fingerprint.clone(),
        origin: intent.origin.clone(),
        response: answer("line\nfeed"),
        completed_at: Timestamp::from_millis(1),
        expires_at: Timestamp::from_millis(2),
    };
    let ended = Some(Timestamp::from_millis(6));
    for (bytes, state, stored) in [
        (
            encode_readable_intent(&intent, None),
            "intent",
            Stored::Intent { intent: intent.clone(), ended_at: None },
        ),
        (
            encode_readable_intent(&intent, ended),
            "unknown",
            Stored::Intent { intent: intent.clone(), ended_at: ended },
        ),
        (encode_readable_record(&record), "completed", Stored::Completed(record.clone())),
    ] {
        assert_eq!(bytes[0], 2);
        let line = bytes[1..].split(|byte| *byte == b'\n').next().unwrap();
        let summary: serde_json::Value = serde_json::from_slice(line).unwrap();
        assert_eq!(summary["state"], state);
        assert_eq!(summary["gateway"], "gateway-1");
        assert_eq!(Stored::decode(&Bytes::from(bytes)), Ok(stored));
    }
}

#[test]
fn a_value_that_is_cut_anywhere_is_refused() {
    let whole = encode_readable_intent(&intent(), None);
    for length in 0..whole.len() {
        assert!(Stored::decode(&Bytes::copy_from_slice(&whole[..length])).is_err(), "{length}");
    }
}
