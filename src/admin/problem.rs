//! The admin listener's errors: the only file of this room that picks a status (RFC 9457).

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use crate::ledger::{DecideError, LedgerError, ListError};

/// An error, with a code that scripts may match on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) code: Code,
    pub(super) detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    BadRequest,
    Unauthorized,
    ForbiddenHost,
    ForbiddenOrigin,
    NotFound,
    KeyAbsent,
    NoRoute,
    MethodNotAllowed,
    RequestTimeout,
    KeyInProgress,
    KeyCompleted,
    KeyNotHeld,
    ForceRefused,
    RequestTooLarge,
    UnsupportedMediaType,
    LedgerUnavailable,
    RecordUnreadable,
    DecisionNotStored,
    Internal,
}

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");

// === impl Problem ===

impl Problem {
    pub(super) fn new(code: Code, detail: impl Display) -> Self {
        Self { code, detail: detail.to_string() }
    }

    pub(super) fn bad_request(detail: impl Display) -> Self {
        Self::new(Code::BadRequest, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code) = (self.code.status(), self.code.as_str());
        let body = serde_json::json!({
            "type": format!("urn:oncegate:problem:{code}"),
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "detail": self.detail,
            "code": code,
        });
        let headers = [(header::CONTENT_TYPE, PROBLEM_JSON), (header::CACHE_CONTROL, NO_STORE)];
        let mut response = (status, headers, body.to_string()).into_response();
        if self.code == Code::Unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, BEARER);
        }
        response
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        let code = match &error {
            LedgerError::RecordUnreadable { .. } => Code::RecordUnreadable,
            LedgerError::Unavailable { .. }
            | LedgerError::SessionLost
            | LedgerError::SessionLostBeginning
            | LedgerError::Overloaded { .. } => Code::LedgerUnavailable,
        };
        Self::new(code, error)
    }
}

impl From<ListError> for Problem {
    fn from(error: ListError) -> Self {
        match error {
            ListError::Cursor => Self::bad_request(format_args!("after: {error}")),
            ListError::Ledger(error) => error.into(),
        }
    }
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Self {
        let code = match error {
            DecideError::Absent => Code::KeyAbsent,
            DecideError::InProgress => Code::KeyInProgress,
            DecideError::Completed => Code::KeyCompleted,
            DecideError::NotHeld => Code::KeyNotHeld,
            DecideError::NotForced { .. } => Code::ForceRefused,
            DecideError::NotStored { .. } => Code::DecisionNotStored,
            DecideError::Ledger(error) => return error.into(),
        };
        Self::new(code, error)
    }
}

// === impl Code ===

impl Code {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad-request",
            Self::Unauthorized => "unauthorized",
            Self::ForbiddenHost => "forbidden-host",
            Self::ForbiddenOrigin => "forbidden-origin",
            Self::NotFound => "not-found",
            Self::KeyAbsent => "key-absent",
            Self::NoRoute => "no-route",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::RequestTimeout => "request-timeout",
            Self::KeyInProgress => "key-in-progress",
            Self::KeyCompleted => "key-completed",
            Self::KeyNotHeld => "key-not-held",
            Self::ForceRefused => "force-refused",
            Self::RequestTooLarge => "request-too-large",
            Self::UnsupportedMediaType => "unsupported-media-type",
            Self::LedgerUnavailable => "ledger-unavailable",
            Self::RecordUnreadable => "record-unreadable",
            Self::DecisionNotStored => "decision-not-stored",
            Self::Internal => "internal",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::ForbiddenHost | Self::ForbiddenOrigin => StatusCode::FORBIDDEN,
            Self::NotFound | Self::KeyAbsent | Self::NoRoute => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::KeyInProgress | Self::KeyCompleted | Self::KeyNotHeld | Self::ForceRefused => {
                StatusCode::CONFLICT
            }
            Self::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::LedgerUnavailable | Self::RecordUnreadable | Self::DecisionNotStored => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
