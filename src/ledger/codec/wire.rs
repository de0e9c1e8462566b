//! The structs that are written. Their fields and variants are only ever added to at the end of
//! a *new version*: a change of the domain's types never changes what is stored.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize, Serializer};

use super::{DecodeError, Stored};
use crate::domain::{
    self, AttemptId, BodyMode, FencingToken, Recipe, Retention, StoredResponse, Timestamp,
};

#[derive(Serialize, Deserialize)]
pub(super) enum Value<'a> {
    #[serde(borrow)]
    Intent(Intent<'a>),
    #[serde(borrow)]
    Completed(Record<'a>),
}

#[derive(Serialize, Deserialize)]
pub(super) struct Intent<'a> {
    attempt_id: AttemptId,
    attempt: u32,
    token: u64,
    may_have_run: bool,
    #[serde(borrow)]
    fingerprint: Fingerprint<'a>,
    completed_for: Duration,
    unknown_for: Option<Duration>,
    #[serde(borrow)]
    origin: Origin<'a>,
    begun_at: u64,
    ended_at: Option<u64>,
    cause: Option<Cause>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Record<'a> {
    attempt_id: AttemptId,
    attempt: u32,
    token: u64,
    #[serde(borrow)]
    fingerprint: Fingerprint<'a>,
    #[serde(borrow)]
    origin: Origin<'a>,
    completed_at: u64,
    expires_at: u64,
    status: u16,
    /// Every line on its own: a name may come more than once, and the order of its lines counts.
    #[serde(borrow)]
    headers: Vec<(&'a str, Raw<'a>)>,
    /// `None` for a tombstone.
    #[serde(borrow)]
    body: Option<Raw<'a>>,
}

/// Bytes in one piece: serde would write a plain slice byte by byte.
#[derive(Deserialize)]
struct Raw<'a>(&'a [u8]);

#[derive(Serialize, Deserialize)]
struct Fingerprint<'a> {
    version: u8,
    #[serde(borrow)]
    body: Body<'a>,
    #[serde(borrow)]
    headers: Vec<&'a str>,
    authority: bool,
    digest: [u8; 32],
}

#[derive(Serialize, Deserialize)]
enum Body<'a> {
    Raw,
    #[serde(borrow)]
    Json(Vec<&'a str>),
    Form,
    Multipart,
    None,
}

#[derive(Serialize, Deserialize)]
struct Origin<'a> {
    route: &'a str,
    gateway: &'a str,
    request_id: &'a str,
}

#[derive(Serialize, Deserialize)]
enum Cause {
    Interrupted,
    TimedOut,
    Status(u16),
    SessionLost,
    Stopped,
    HolderGone,
}

// === impl Value ===

impl<'a> Value<'a> {
    pub(super) fn of_intent(intent: &'a domain::Intent, ended_at: Option<Timestamp>) -> Self {
        Self::Intent(Intent {
            attempt_id: intent.attempt_id,
            attempt: intent.attempt,
            token: intent.token.get(),
            may_have_run: intent.may_have_run,
            fingerprint: Fingerprint::of(&intent.fingerprint),
            completed_for: intent.retention.completed,
            unknown_for: intent.retention.unknown,
            origin: Origin::of(&intent.origin),
            begun_at: intent.begun_at.as_millis(),
            ended_at: ended_at.map(Timestamp::as_millis),
            cause: intent.cause.map(Cause::of),
        })
    }

    pub(super) fn of_record(record: &'a domain::Record) -> Self {
        let response = &record.response;
        Self::Completed(Record {
            attempt_id: record.attempt_id,
            attempt: record.attempt,
            token: record.token.get(),
            fingerprint: Fingerprint::of(&record.fingerprint),
            origin: Origin::of(&record.origin),
            completed_at: record.completed_at.as_millis(),
            expires_at: record.expires_at.as_millis(),
            status: response.status.as_u16(),
            headers: response
                .headers
                .iter()
                .map(|(name, value)| (name.as_str(), Raw(value.as_bytes())))
                .collect(),
            body: match &response.body {
                domain::StoredBody::Kept(body) => Some(Raw(body)),
                domain::StoredBody::TooLarge => None,
            },
        })
    }

    /// `whole` is the memory that the borrowed parts lie in.
    pub(super) fn into_stored(self, whole: &Bytes) -> Result<Stored, DecodeError> {
        match self {
            Self::Intent(intent) => intent.into_stored(),
            Self::Completed(record) => record.into_domain(whole).map(Stored::Completed),
        }
    }
}

// === impl Intent ===

impl Intent<'_> {
    fn into_stored(self) -> Result<Stored, DecodeError> {
        let ended_at = self.ended_at.map(Timestamp::from_millis);
        let intent = domain::Intent {
            attempt_id: self.attempt_id,
            attempt: self.attempt,
            token: FencingToken::new(self.token),
            may_have_run: self.may_have_run,
            fingerprint: self.fingerprint.into_domain()?,
            retention: Retention { completed: self.completed_for, unknown: self.unknown_for },
            origin: self.origin.into_domain(),
            begun_at: Timestamp::from_millis(self.begun_at),
            cause: self.cause.map(Cause::into_domain),
        };
        Ok(Stored::Intent { intent, ended_at })
    }
}

// === impl Record ===

impl Record<'_> {
    fn into_domain(self, whole: &Bytes) -> Result<domain::Record, DecodeError> {
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        for (name, value) in self.headers {
            let value = HeaderValue::from_bytes(value.0)
                .map_err(|_invalid| DecodeError::Corrupt("a header value"))?;
            headers.append(header_name(name)?, value);
        }
        let status = StatusCode::from_u16(self.status)
            .map_err(|_invalid| DecodeError::Corrupt("the status"))?;
        let body = match self.body {
            Some(body) => domain::StoredBody::Kept(whole.slice_ref(body.0)),
            None => domain::StoredBody::TooLarge,
        };
        Ok(domain::Record {
            attempt_id: self.attempt_id,
            attempt: self.attempt,
            token: FencingToken::new(self.token),
            fingerprint: self.fingerprint.into_domain()?,
            origin: self.origin.into_domain(),
            response: StoredResponse { status, headers, body },
            completed_at: Timestamp::from_millis(self.completed_at),
            expires_at: Timestamp::from_millis(self.expires_at),
        })
    }
}

// === impl Raw ===

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

// === impl Fingerprint ===

impl<'a> Fingerprint<'a> {
    fn of(fingerprint: &'a domain::Fingerprint) -> Self {
        let recipe = &fingerprint.recipe;
        Self {
            version: recipe.version,
            body: match &recipe.body {
                BodyMode::Raw => Body::Raw,
                BodyMode::Json { ignore } => {
                    Body::Json(ignore.iter().map(String::as_str).collect())
                }
                BodyMode::Form => Body::Form,
                BodyMode::Multipart => Body::Multipart,
                BodyMode::None => Body::None,
            },
            headers: recipe.headers.iter().map(HeaderName::as_str).collect(),
            authority: recipe.authority,
            digest: fingerprint.digest,
        }
    }

    /// A recipe of another version is not guessed at: no request could be compared by it, and every
    /// retry would be taken for a different request.
    fn into_domain(self) -> Result<domain::Fingerprint, DecodeError> {
        if self.version != Recipe::VERSION {
            return Err(DecodeError::Recipe(self.version));
        }
        let body = match self.body {
            Body::Raw => BodyMode::Raw,
            Body::Json(ignore) => {
                BodyMode::Json { ignore: ignore.into_iter().map(str::to_owned).collect() }
            }
            Body::Form => BodyMode::Form,
            Body::Multipart => BodyMode::Multipart,
            Body::None => BodyMode::None,
        };
        let headers = self.headers.into_iter().map(header_name).collect::<Result<_, _>>()?;
        let recipe = Recipe { version: self.version, body, headers, authority: self.authority };
        Ok(domain::Fingerprint { recipe: Arc::new(recipe), digest: self.digest })
    }
}

fn header_name(name: &str) -> Result<HeaderName, DecodeError> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_invalid| DecodeError::Corrupt("a header name"))
}

// === impl Origin ===

impl<'a> Origin<'a> {
    fn of(origin: &'a domain::Origin) -> Self {
        Self { route: &origin.route, gateway: &origin.gateway, request_id: &origin.request_id }
    }

    fn into_domain(self) -> domain::Origin {
        domain::Origin {
            route: self.route.into(),
            gateway: self.gateway.into(),
            request_id: self.request_id.into(),
            trace: None,
        }
    }
}

// === impl Cause ===

impl Cause {
    fn of(cause: domain::Cause) -> Self {
        match cause {
            domain::Cause::Interrupted => Self::Interrupted,
            domain::Cause::TimedOut => Self::TimedOut,
            domain::Cause::Status(status) => Self::Status(status),
            domain::Cause::SessionLost => Self::SessionLost,
            domain::Cause::Stopped => Self::Stopped,
            domain::Cause::HolderGone => Self::HolderGone,
        }
    }

    fn into_domain(self) -> domain::Cause {
        match self {
            Self::Interrupted => domain::Cause::Interrupted,
            Self::TimedOut => domain::Cause::TimedOut,
            Self::Status(status) => domain::Cause::Status(status),
            Self::SessionLost => domain::Cause::SessionLost,
            Self::Stopped => domain::Cause::Stopped,
            Self::HolderGone => domain::Cause::HolderGone,
        }
    }
}
