//! Deciding about keys whose outcome is unknown. Each decision, also a refused one, is audited.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Path, Request, State};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;

use super::{
    super::problem::{Code, Problem},
    Answered, Api, answer, body,
    keys::key_id,
    view,
};
use crate::{
    domain::{KeyId, StoredBody, StoredResponse},
    gateway::headers::storable,
    ledger::Entry,
    telemetry::Audit,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolve {
    reason: String,
    actor: Option<String>,
    status: u16,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    body_base64: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    reason: String,
    actor: Option<String>,
    #[serde(default)]
    force: bool,
}

/// Bytes, as of the largest `max_stored_body` that every ledger can keep.
const LARGEST_BODY: usize = 512 * 1024;

/// Bytes of `reason` and `actor`: they stand in a log line.
const LONGEST_WORDS: usize = 1000;

pub(super) async fn resolve(
    State(api): State<Api>,
    Path(id): Path<String>,
    request: Request,
) -> Answered {
    let key = key_id(&id)?;
    let peer = peer(&request);
    let Resolve { reason, actor, status, headers, body, body_base64 } =
        body::read(request.into_body()).await?;
    check_words(&reason, actor.as_deref())?;
    let response = response(status, headers, self::body(body, body_base64)?)?;
    carried_out(async move {
        let resolved = api.operator.resolve(key, response).await;
        let told = resolved.map_err(Problem::from).map(|record| {
            let entry = Entry::completed(key, &record);
            answer(view::entry(&entry, api.directory.waiters(&key)))
        });
        audit("resolve", &key, &told, (actor.as_deref(), peer, &reason), Some(status));
        told
    })
    .await
}

pub(super) async fn release(
    State(api): State<Api>,
    Path(id): Path<String>,
    request: Request,
) -> Answered {
    let key = key_id(&id)?;
    let peer = peer(&request);
    let Release { reason, actor, force } = body::read(request.into_body()).await?;
    check_words(&reason, actor.as_deref())?;
    carried_out(async move {
        let told = if force {
            forced(&api, key).await
        } else {
            let released = api.operator.release(key).await.map_err(Problem::from);
            released.map(|()| answer(view::absent(&key)))
        };
        let action = if force { "force" } else { "release" };
        audit(action, &key, &told, (actor.as_deref(), peer, &reason), None);
        told
    })
    .await
}

async fn forced(api: &Api, key: KeyId) -> Answered {
    let route = api.operator.show(key).await?.map(|entry| entry.origin.route);
    let longest_call = api.directory.longest_call(route.as_deref().unwrap_or_default());
    api.operator.force(key, longest_call).await?;
    let told = match api.operator.show(key).await? {
        Some(entry) => view::entry(&entry, api.directory.waiters(&key)),
        None => view::absent(&key),
    };
    Ok(answer(told))
}

/// In a task of its own: a client that hangs up must not leave a decision without its audit event.
async fn carried_out(work: impl Future<Output = Answered> + Send + 'static) -> Answered {
    match tokio::spawn(work).await {
        Ok(told) => told,
        Err(_panicked) => {
            let detail = "it is not known whether the decision was made: look at the key";
            Err(Problem::new(Code::Internal, detail))
        }
    }
}

fn audit(
    action: &'static str,
    key: &KeyId,
    told: &Answered,
    (actor, peer, reason): (Option<&str>, Option<SocketAddr>, &str),
    status: Option<u16>,
) {
    let result = told.as_ref().err().map_or("done", |problem| problem.code.as_str());
    Audit { action, key, result, actor, peer, reason, status }.log();
}

fn peer(request: &Request) -> Option<SocketAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0)
}

/// They are for people, and stand in a log that may be plain text.
fn check_words(reason: &str, actor: Option<&str>) -> Result<(), Problem> {
    if reason.trim().is_empty() {
        return Err(Problem::bad_request("reason: say why, for the audit log"));
    }
    for (name, words) in [("reason", Some(reason)), ("actor", actor)] {
        let words = words.unwrap_or_default();
        if words.len() > LONGEST_WORDS || words.chars().any(char::is_control) {
            let detail =
                format!("{name}: write at most {LONGEST_WORDS} bytes without control characters");
            return Err(Problem::bad_request(detail));
        }
    }
    Ok(())
}

fn body(text: Option<String>, base64: Option<String>) -> Result<Bytes, Problem> {
    let body = match (text, base64) {
        (Some(_), Some(_)) => {
            return Err(Problem::bad_request("write body or body_base64, not both"));
        }
        (Some(text), None) => Bytes::from(text),
        (None, Some(encoded)) => BASE64_STANDARD
            .decode(encoded)
            .map(Bytes::from)
            .map_err(|error| Problem::bad_request(format_args!("body_base64: {error}")))?,
        (None, None) => Bytes::new(),
    };
    if body.len() > LARGEST_BODY {
        let detail = format!("the answer's body is over {LARGEST_BODY} bytes");
        return Err(Problem::new(Code::RequestTooLarge, detail));
    }
    Ok(body)
}

fn response(
    status: u16,
    lines: Vec<(String, String)>,
    body: Bytes,
) -> Result<StoredResponse, Problem> {
    let status = StatusCode::from_u16(status).ok().filter(|status| {
        let status = status.as_u16();
        (200..600).contains(&status)
    });
    let status = status.ok_or_else(|| Problem::bad_request("status: write 200 to 599"))?;
    let has_no_body = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if has_no_body && !body.is_empty() {
        let detail = format!("an answer with status {} has no body", status.as_u16());
        return Err(Problem::bad_request(detail));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let parsed = (name.parse::<HeaderName>(), HeaderValue::from_str(&value));
        let (Ok(name), Ok(value)) = parsed else {
            return Err(Problem::bad_request("headers: a name or value is not one of a header"));
        };
        headers.append(name, value);
    }
    let kept = storable(headers.clone(), &REPLAYED, &[]);
    if let Some(name) = headers.keys().find(|name| !kept.contains_key(*name)) {
        let detail = format!("headers: {name} is of one message or caller, and never kept");
        return Err(Problem::bad_request(detail));
    }
    Ok(StoredResponse { status, headers, body: StoredBody::Kept(body) }.compact())
}

/// The gateway sets it, also where a route names it otherwise.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
