//! What the cases ask for, and what they expect.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use crate::{
    domain::{
        BodyMode, Fingerprint, Intent, KeyId, Origin, Recipe, Record, Retention, StoredBody,
        StoredResponse, Subject,
    },
    ledger::{Begin, Begun, Hold, Ledger, Takeover},
};

pub(in crate::ledger) const COMPLETED: Duration = Duration::from_hours(24);
pub(in crate::ledger) const UNKNOWN: Duration = Duration::from_hours(7 * 24);

/// A request under key number `key`. All of them are equal but for what is changed afterwards.
pub(in crate::ledger) fn request(key: u8) -> Begin {
    let subject = Subject {
        method: Method::POST,
        authority: "api.example.com".into(),
        path: "/v1/charges".into(),
        query: None,
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"amount=100"),
        secret: None,
    };
    Begin {
        key: KeyId::from_bytes([key; 32]),
        subject: Arc::new(subject),
        fingerprint: fingerprint(1),
        origin: Origin {
            route: "charges".into(),
            gateway: "gateway-1".into(),
            request_id: "request-1".into(),
            trace: None,
        },
        retention: Retention { completed: COMPLETED, unknown: Some(UNKNOWN) },
        takeover: Takeover::Never,
        wait_until: None,
        observer: None,
    }
}

/// Another request under the same key.
pub(in crate::ledger) fn other(key: u8) -> Begin {
    Begin { fingerprint: fingerprint(2), ..request(key) }
}

/// One that waits for a live holder as long as a test may take.
pub(in crate::ledger) fn patient(key: u8) -> Begin {
    Begin { wait_until: Some(Instant::now() + Duration::from_mins(1)), ..request(key) }
}

pub(in crate::ledger) fn takeover(key: u8, most: u32) -> Begin {
    Begin { takeover: Takeover::UpTo(most), ..request(key) }
}

fn fingerprint(digest: u8) -> Fingerprint {
    let recipe = Recipe { version: 1, body: BodyMode::Raw, headers: Vec::new(), authority: true };
    Fingerprint { recipe: Arc::new(recipe), digest: [digest; 32] }
}

/// Repeated lines, bytes that are not UTF-8, and a body.
pub(in crate::ledger) fn answer(body: &'static str) -> StoredResponse {
    let mut headers = HeaderMap::new();
    headers.append("x-note", HeaderValue::from_bytes(b"caf\xe9").unwrap());
    headers.append("location", HeaderValue::from_static("/v1/charges/1"));
    headers.append("x-note", HeaderValue::from_static("second"));
    StoredResponse {
        status: StatusCode::CREATED,
        headers,
        body: StoredBody::Kept(Bytes::from_static(body.as_bytes())),
    }
}

#[track_caller]
pub(in crate::ledger) fn owner(begun: Begun) -> Hold {
    let Begun::Owner(hold) = begun else { panic!("expected to own the key: {begun:?}") };
    hold
}

#[track_caller]
pub(in crate::ledger) fn completed(begun: Begun) -> Arc<Record> {
    let Begun::Completed(record) = begun else { panic!("expected an answer: {begun:?}") };
    record
}

#[track_caller]
pub(in crate::ledger) fn unknown(begun: Begun) -> Intent {
    let Begun::Unknown(intent) = begun else { panic!("expected an unknown outcome: {begun:?}") };
    intent
}

pub(in crate::ledger) async fn begin(ledger: &Arc<dyn Ledger>, begin: Begin) -> Begun {
    ledger.begin(begin).await.expect("the ledger works")
}

/// Owns the key with its gate open: a request that is being executed.
pub(in crate::ledger) async fn executing(ledger: &Arc<dyn Ledger>, request: Begin) -> Hold {
    let hold = owner(begin(ledger, request).await);
    hold.gate().open().expect("the lease runs");
    hold
}
