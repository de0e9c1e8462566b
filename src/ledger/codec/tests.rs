//! What goes in comes out, and nothing else is believed.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::{collection::vec, option, prelude::*, strategy::ValueTree};

use super::{DecodeError, Stored, encode_readable_intent, encode_readable_record};
use crate::domain::{
    AttemptId, BodyMode, Cause, FencingToken, Fingerprint, Intent, Origin, Recipe, Record,
    Retention, StoredBody, StoredResponse, Timestamp, TracePoint,
};

fn body_mode() -> impl Strategy<Value = BodyMode> {
    prop_oneof![
        Just(BodyMode::Raw),
        vec("/[a-z~/]{0,9}", 0..3).prop_map(|ignore| BodyMode::Json { ignore }),
        Just(BodyMode::Form),
        Just(BodyMode::Multipart),
        Just(BodyMode::None),
    ]
}

fn header_name() -> impl Strategy<Value = HeaderName> {
    // Few names, so that lines of the same name are common.
    "(location|x-[a-c]|content-encoding)".prop_map(|name| name.parse().unwrap())
}

fn header_value() -> impl Strategy<Value = HeaderValue> {
    vec(prop_oneof![32_u8..127, 128_u8..=255], 0..20)
        .prop_map(|bytes| HeaderValue::from_bytes(&bytes).unwrap())
}

fn headers() -> impl Strategy<Value = HeaderMap> {
    vec((header_name(), header_value()), 0..8).prop_map(|lines| {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        headers
    })
}

fn fingerprint() -> impl Strategy<Value = Fingerprint> {
    (body_mode(), vec(header_name(), 0..3), any::<bool>(), any::<[u8; 32]>()).prop_map(
        |(body, headers, authority, digest)| {
            let recipe = Recipe { version: Recipe::VERSION, body, headers, authority };
            Fingerprint { recipe: Arc::new(recipe), digest }
        },
    )
}

fn origin() -> impl Strategy<Value = Origin> {
    let trace = option::of(any::<([u8; 16], [u8; 8])>());
    (".{0,9}", ".{0,9}", ".{0,9}", trace).prop_map(|(route, gateway, request_id, trace)| Origin {
        route: route.into(),
        gateway: gateway.into(),
        request_id: request_id.into(),
        trace: trace.map(|(trace_id, span_id)| TracePoint { trace_id, span_id }),
    })
}

fn response() -> impl Strategy<Value = StoredResponse> {
    let body = option::of(vec(any::<u8>(), 0..200)).prop_map(|body| match body {
        Some(body) => StoredBody::Kept(body.into()),
        None => StoredBody::TooLarge,
    });
    (100_u16..1000, headers(), body).prop_map(|(status, headers, body)| StoredResponse {
        status: StatusCode::from_u16(status).unwrap(),
        headers,
        body,
    })
}

fn cause() -> impl Strategy<Value = Cause> {
    prop_oneof![
        Just(Cause::Interrupted),
        Just(Cause::TimedOut),
        any::<u16>().prop_map(Cause::Status),
        Just(Cause::SessionLost),
        Just(Cause::Stopped),
        Just(Cause::HolderGone),
    ]
}

fn record() -> impl Strategy<Value = Stored> {
    (fingerprint(), origin(), response(), any::<(u32, u64, u64, u64)>()).prop_map(
        |(fingerprint, origin, response, (attempt, token, completed_at, expires_at))| {
            Stored::Completed(Record {
                attempt_id: AttemptId::random(),
                attempt,
                token: FencingToken::new(token),
                fingerprint,
                origin,
                response,
                completed_at: Timestamp::from_millis(completed_at),
                expires_at: Timestamp::from_millis(expires_at),
            })
        },
    )
}

fn intent() -> impl Strategy<Value = Stored> {
    let times = (any::<Duration>(), option::of(any::<Duration>()), option::of(any::<u64>()));
    let counts = any::<(u32, u64, u64, bool)>();
    (fingerprint(), origin(), option::of(cause()), times, counts).prop_map(
        |(fingerprint, origin, cause, (completed, unknown, ended_at), counts)| {
            let (attempt, token, begun_at, may_have_run) = counts;
            let intent = Intent {
                attempt_id: AttemptId::random(),
                attempt,
                token: FencingToken::new(token),
                may_have_run,
                fingerprint,
                retention: Retention { completed, unknown },
                origin,
                begun_at: Timestamp::from_millis(begun_at),
                cause,
            };
            Stored::Intent { intent, ended_at: ended_at.map(Timestamp::from_millis) }
        },
    )
}

fn readable(stored: &Stored) -> Vec<u8> {
    match stored {
        Stored::Intent { intent, ended_at } => encode_readable_intent(intent, *ended_at),
        Stored::Completed(record) => encode_readable_record(record),
    }
}

proptest! {
    #[test]
    fn a_value_is_read_as_it_was_written(stored in prop_oneof![record(), intent()]) {
        let bytes = Bytes::from(stored.encode());
        prop_assert_eq!(Stored::decode(&bytes), Ok(stored));
    }

    #[test]
    fn a_value_with_a_summary_is_read_as_it_was_written(stored in prop_oneof![record(), intent()]) {
        prop_assert_eq!(Stored::decode(&Bytes::from(readable(&stored))), Ok(stored));
    }

    /// Written before there were traces, or by a gateway that makes none.
    #[test]
    fn a_value_without_a_trace_is_the_same_in_every_build(
        mut stored in prop_oneof![record(), intent()],
        trace in any::<([u8; 16], [u8; 8])>(),
    ) {
        stored.origin_mut().trace = None;
        let (plain, summarised) = (stored.encode(), readable(&stored));
        prop_assert_eq!((plain[0], summarised[0]), (1, 2));
        prop_assert_eq!(Stored::decode(&Bytes::from(plain.clone())), Ok(stored.clone()));
        stored.origin_mut().trace = Some(TracePoint { trace_id: trace.0, span_id: trace.1 });
        let traced = stored.encode();
        prop_assert_eq!((traced[0], readable(&stored)[0]), (3, 4));
        prop_assert_eq!(&traced[1..25], &[&trace.0[..], &trace.1].concat());
        prop_assert_eq!(&traced[25..], &plain[1..]);
    }

    #[test]
    fn a_value_that_was_cut_or_grew_is_corrupt(stored in prop_oneof![record(), intent()]) {
        let bytes = stored.encode();
        let cut = Bytes::from(bytes[..bytes.len() - 1].to_vec());
        prop_assert!(Stored::decode(&cut).is_err());
        let grown = Bytes::from([&bytes[..], &[0]].concat());
        prop_assert!(Stored::decode(&grown).is_err());
    }

    #[test]
    fn any_bytes_are_refused_or_read_but_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        for version in 1..5 {
            drop(Stored::decode(&Bytes::from([&[version], &bytes[..]].concat())));
        }
    }

    #[test]
    fn a_version_from_the_future_is_named(version in 5_u8.., rest in vec(any::<u8>(), 0..9)) {
        let bytes = Bytes::from([vec![version], rest].concat());
        prop_assert_eq!(Stored::decode(&bytes), Err(DecodeError::Version(version)));
    }

    /// Else its every retry would be refused as a different request.
    #[test]
    fn a_fingerprint_from_the_future_is_named(
        mut stored in prop_oneof![record(), intent()],
        version in 2_u8..,
    ) {
        let fingerprint = match &mut stored {
            Stored::Intent { intent, .. } => &mut intent.fingerprint,
            Stored::Completed(record) => &mut record.fingerprint,
        };
        Arc::make_mut(&mut fingerprint.recipe).version = version;
        let bytes = Bytes::from(stored.encode());
        prop_assert_eq!(Stored::decode(&bytes), Err(DecodeError::Recipe(version)));
    }
}

#[test]
fn a_kept_body_is_not_copied() {
    let runner = &mut proptest::test_runner::TestRunner::deterministic();
    let Stored::Completed(mut record) = record().new_tree(runner).unwrap().current() else {
        panic!("a record")
    };
    record.response.body = StoredBody::Kept(Bytes::from_static(b"receipt"));
    let bytes = Bytes::from(Stored::Completed(record).encode());

    let Ok(Stored::Completed(read)) = Stored::decode(&bytes) else { panic!("a record") };

    let StoredBody::Kept(body) = read.response.body else { panic!("a body") };
    assert!(bytes.as_ptr_range().contains(&body.as_ptr()));
}

#[test]
fn nothing_is_no_value() {
    assert_eq!(Stored::decode(&Bytes::new()), Err(DecodeError::Empty));
}
