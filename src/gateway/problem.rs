//! The gateway's own answers: the only file that picks a status code for them (RFC 9457).

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use super::{RequestId, ResponseBody, headers::IDEMPOTENCY_ERROR_SOURCE};

/// An answer of the gateway itself, never mistaken for the upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    /// What this gateway knows of the operation behind the key; `None` for a request without one.
    pub known: Option<Known>,
    pub detail: Cow<'static, str>,
}

/// Stable, documented names of what went wrong; safe to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    KeyMissing,
    KeyInvalid,
    ScopeMissing,
    BadRequest,
    RequestTimeout,
    RequestTooLarge,
    HeadersTooLarge,
    NoRoute,
    KeyReused,
    InProgress,
    OutcomeUnknown,
    NotReplayable,
    LedgerUnavailable,
    RecordUnreadable,
    SessionLost,
    AnswerNotStored,
    Overloaded,
    UpstreamUnreachable,
    UpstreamInterrupted,
    UpstreamTimeout,
}

/// What is known of the operation behind a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// This request was not forwarded.
    NotSent,
    InProgress,
    Unknown,
    Completed,
}

/// The members, in the order in which a person reads them.
#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    #[serde(flatten)]
    key: Option<KeyMembers>,
}

#[derive(Serialize)]
struct KeyMembers {
    outcome: Known,
    retry_same_key: bool,
    new_key_safe: bool,
}

/// Obeyed by Stripe's SDKs: whether the same request is to be sent again.
pub(super) const STRIPE_SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const GATEWAY: HeaderValue = HeaderValue::from_static("gateway");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const TRUE: HeaderValue = HeaderValue::from_static("true");
const FALSE: HeaderValue = HeaderValue::from_static("false");

/// An answer of the gateway itself, with its request's id.
pub(super) fn refuse<B>(problem: Problem, request_id: &RequestId) -> Response<ResponseBody<B>> {
    let outcome = problem.code.outcome();
    let mut response = problem.into_response().map(ResponseBody::whole);
    request_id.set(response.headers_mut());
    response.extensions_mut().insert(outcome);
    response
}

// === impl Problem ===

impl Problem {
    pub(crate) fn new(code: Code, known: Known, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, known: Some(known), detail: detail.into() }
    }

    /// The same problem of a request that has no key.
    #[must_use]
    pub fn without_key(self) -> Self {
        Self { known: None, ..self }
    }

    pub fn into_response(self) -> Response<Bytes> {
        let body = Bytes::from(self.document());
        let mut response = Response::new(body);
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        headers.insert(IDEMPOTENCY_ERROR_SOURCE, GATEWAY);
        if let Some(seconds) = self.code.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.known.is_some() {
            let retry = if self.code.retry_same_key() { TRUE } else { FALSE };
            headers.insert(STRIPE_SHOULD_RETRY, retry);
        }
        response
    }

    /// A whole HTTP/1.1 answer that closes its connection, for requests that never became one.
    pub fn into_closing_bytes(self) -> Bytes {
        let (parts, body) = self.into_response().into_parts();
        let mut text = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
        for (name, value) in &parts.headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        text.extend_from_slice(b"connection: close\r\n\r\n");
        text.extend_from_slice(&body);
        text.into()
    }

    fn document(&self) -> Vec<u8> {
        let code = self.code;
        let new_key_safe = code.is_new_key_safe();
        let detail = match self.known {
            Some(_) if !new_key_safe => {
                Cow::Owned(format!("{} A new key can run the operation twice.", self.detail))
            }
            Some(_) | None => Cow::Borrowed(&*self.detail),
        };
        let document = Document {
            r#type: format!("urn:oncegate:problem:{}", code.as_str()),
            title: code.title(),
            status: code.status().as_u16(),
            detail: &detail,
            code: code.as_str(),
            key: self.known.map(|outcome| KeyMembers {
                outcome,
                retry_same_key: code.retry_same_key(),
                new_key_safe,
            }),
        };
        let mut text =
            serde_json::to_vec(&document).expect("strings, numbers and booleans are always JSON");
        // Problems are read in terminals.
        text.push(b'\n');
        text
    }
}

// === impl Code ===

impl Code {
    /// Every code, for the documentation's tests.
    pub const ALL: [Self; 20] = [
        Self::KeyMissing,
        Self::KeyInvalid,
        Self::ScopeMissing,
        Self::BadRequest,
        Self::RequestTimeout,
        Self::RequestTooLarge,
        Self::HeadersTooLarge,
        Self::NoRoute,
        Self::KeyReused,
        Self::InProgress,
        Self::OutcomeUnknown,
        Self::NotReplayable,
        Self::LedgerUnavailable,
        Self::RecordUnreadable,
        Self::SessionLost,
        Self::AnswerNotStored,
        Self::Overloaded,
        Self::UpstreamUnreachable,
        Self::UpstreamInterrupted,
        Self::UpstreamTimeout,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyInvalid => "key-invalid",
            Self::ScopeMissing => "scope-missing",
            Self::BadRequest => "bad-request",
            Self::RequestTimeout => "request-timeout",
            Self::RequestTooLarge => "request-too-large",
            Self::HeadersTooLarge => "headers-too-large",
            Self::NoRoute => "no-route",
            Self::KeyReused => "key-reused",
            Self::InProgress => "in-progress",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::NotReplayable => "not-replayable",
            Self::LedgerUnavailable => "ledger-unavailable",
            Self::RecordUnreadable => "record-unreadable",
            Self::SessionLost => "session-lost",
            Self::AnswerNotStored => "answer-not-stored",
            Self::Overloaded => "overloaded",
            Self::UpstreamUnreachable => "upstream-unreachable",
            Self::UpstreamInterrupted => "upstream-interrupted",
            Self::UpstreamTimeout => "upstream-timeout",
        }
    }

    pub const fn status(self) -> StatusCode {
        match self {
            Self::KeyMissing | Self::KeyInvalid | Self::ScopeMissing | Self::BadRequest => {
                StatusCode::BAD_REQUEST
            }
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::NoRoute => StatusCode::NOT_FOUND,
            Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::InProgress | Self::OutcomeUnknown | Self::NotReplayable => StatusCode::CONFLICT,
            Self::LedgerUnavailable
            | Self::RecordUnreadable
            | Self::SessionLost
            | Self::AnswerNotStored
            | Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::UpstreamUnreachable | Self::UpstreamInterrupted => StatusCode::BAD_GATEWAY,
            Self::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::KeyMissing => "The idempotency key is missing",
            Self::KeyInvalid => "The idempotency key is invalid",
            Self::ScopeMissing => "The caller cannot be told apart",
            Self::BadRequest => "The request is malformed or ambiguous",
            Self::RequestTimeout => "The request came too slowly",
            Self::RequestTooLarge => "The request body is too large",
            Self::HeadersTooLarge => "The request head is too large",
            Self::NoRoute => "No route matches",
            Self::KeyReused => "The idempotency key belongs to another request",
            Self::InProgress => "A request with this key is in progress",
            Self::OutcomeUnknown => "The outcome of this key is unknown",
            Self::NotReplayable => "The answer was too large to keep",
            Self::LedgerUnavailable => "The ledger is unavailable",
            Self::RecordUnreadable => "The key's record is unreadable",
            Self::SessionLost => "The key's lock was lost",
            Self::AnswerNotStored => "The answer could not be stored",
            Self::Overloaded => "The gateway is at a limit",
            Self::UpstreamUnreachable => "The upstream is unreachable",
            Self::UpstreamInterrupted => "The upstream's answer was interrupted",
            Self::UpstreamTimeout => "The upstream did not answer in time",
        }
    }

    /// In whole seconds.
    const fn retry_after(self) -> Option<u16> {
        match self {
            Self::InProgress | Self::Overloaded | Self::UpstreamUnreachable => Some(1),
            Self::LedgerUnavailable
            | Self::RecordUnreadable
            | Self::SessionLost
            | Self::AnswerNotStored => Some(2),
            Self::KeyMissing
            | Self::KeyInvalid
            | Self::ScopeMissing
            | Self::BadRequest
            | Self::RequestTimeout
            | Self::RequestTooLarge
            | Self::HeadersTooLarge
            | Self::NoRoute
            | Self::KeyReused
            | Self::OutcomeUnknown
            | Self::NotReplayable
            | Self::UpstreamInterrupted
            | Self::UpstreamTimeout => None,
        }
    }

    /// Whether sending the same request with the same key again can help.
    pub const fn retry_same_key(self) -> bool {
        match self {
            Self::RequestTimeout
            | Self::InProgress
            | Self::LedgerUnavailable
            | Self::RecordUnreadable
            | Self::SessionLost
            | Self::AnswerNotStored
            | Self::Overloaded
            | Self::UpstreamUnreachable
            | Self::UpstreamInterrupted
            | Self::UpstreamTimeout => true,
            Self::KeyMissing
            | Self::KeyInvalid
            | Self::ScopeMissing
            | Self::BadRequest
            | Self::RequestTooLarge
            | Self::HeadersTooLarge
            | Self::NoRoute
            | Self::KeyReused
            | Self::OutcomeUnknown
            | Self::NotReplayable => false,
        }
    }

    /// Whether the operation surely runs at most once if the client takes a new key: only where
    /// the request was refused for what it is, before anything was asked about its key.
    pub fn is_new_key_safe(self) -> bool {
        matches!(self.status().as_u16(), 400 | 404 | 408 | 413 | 431)
    }
}
