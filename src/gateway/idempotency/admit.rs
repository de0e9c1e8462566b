//! From a request to a call: key, scope, permit, body, fingerprint, in this order.
//!
//! Everything here happens before a lock is taken, so whatever is refused here touches no key.

use std::{pin::pin, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Request, header, request::Parts};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::{Settings, Shared};
use crate::{
    arbiter::{Call, Full},
    domain::{IdempotencyKey, KeyId, Origin, Scope, Subject},
    gateway::{
        RequestId,
        gather::Gathered,
        problem::{Code, Known, Problem},
    },
    telemetry::trace::Trace,
};

/// A keyed request, read completely.
pub(super) struct Admitted {
    pub(super) call: Call,
    /// What is forwarded, but for the headers, which the call's subject has.
    pub(super) parts: Parts,
}

/// Reads the key of a request that must have one.
pub(super) fn key(headers: &HeaderMap, settings: &Settings) -> Result<IdempotencyKey, Problem> {
    let key = IdempotencyKey::read(headers, &settings.header, settings.key).map_err(|error| {
        let detail = format!("The header {} is no idempotency key: {error}.", settings.header);
        Problem::new(Code::KeyInvalid, Known::NotSent, detail)
    })?;
    key.ok_or_else(|| {
        let detail = format!("This route needs the header {}.", settings.header);
        Problem::new(Code::KeyMissing, Known::NotSent, detail)
    })
}

pub(super) async fn admit<B>(
    request: Request<B>,
    key: IdempotencyKey,
    request_id: &RequestId,
    shared: &Shared,
    settings: &Settings,
) -> Result<Admitted, Problem>
where
    B: Body<Data = Bytes>,
{
    let (mut parts, body) = request.into_parts();
    let scope = Scope::read(&parts.headers, &settings.scope).map_err(|missing| {
        let detail = format!("This route tells its callers apart by the header {}.", missing.0);
        Problem::new(Code::ScopeMissing, Known::NotSent, detail)
    })?;
    let permit = shared.permits.take(Some(scope)).map_err(|full| {
        overloaded(match full {
            Full::All => "Too many requests are in flight.",
            Full::Scope => "Too many requests of this caller are in flight.",
        })
    })?;

    let announced = body.size_hint().exact();
    if announced.is_some_and(|length| length > settings.max_request_body) {
        return Err(too_large(settings));
    }
    let request_bytes = announced.unwrap_or(settings.max_request_body);
    let needed = request_bytes.saturating_add(settings.max_stored_body);
    let mut reserved = shared
        .budget
        .reserve(needed)
        .map_err(|_| overloaded("Too many bytes of bodies are held."))?;
    let body = tokio::time::timeout(settings.body_timeout, read(body, settings)).await.map_err(
        |_| {
            let detail = format!("The body did not arrive within {:?}.", settings.body_timeout);
            Problem::new(Code::RequestTimeout, Known::NotSent, detail)
        },
    )??;
    reserved.shrink_to((body.len() as u64).saturating_add(settings.max_stored_body));

    let key_id = KeyId::new(shared.secret.as_deref(), &settings.namespace, &scope, &key);
    let subject = Arc::new(subject(&mut parts, body, shared));
    let fingerprint = subject.fingerprint(&settings.recipe);
    let trace: Trace = parts.extensions.get().cloned().unwrap_or_default();
    let origin = Origin {
        route: Arc::clone(&settings.route),
        gateway: Arc::clone(&shared.gateway),
        request_id: Arc::from(request_id.as_str()),
        trace: trace.point(),
    };
    trace.keyed(shared.key_naming.name(&key, &key_id));
    let call = Call {
        key: key_id,
        subject,
        fingerprint,
        origin,
        policy: Arc::clone(&settings.policy),
        wait_until: settings.wait.map(|wait| Instant::now() + wait),
        permit,
        reserved,
        idempotency_key: key,
        key_naming: shared.key_naming,
        metrics: settings.metrics.clone(),
        trace,
    };
    Ok(Admitted { call, parts })
}

async fn read<B>(body: B, settings: &Settings) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut gathered = Gathered::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            let detail = "The body broke off or is malformed.";
            Problem::new(Code::BadRequest, Known::NotSent, detail)
        })?;
        // Trailers belong to the connection: they are neither compared nor forwarded.
        let Ok(data) = frame.into_data() else { continue };
        if gathered.len() + data.len() as u64 > settings.max_request_body {
            return Err(too_large(settings));
        }
        gathered.push(data);
    }
    Ok(gathered.into_bytes())
}

/// Takes the headers out of `parts`: only the request that executes needs a copy of them.
fn subject(parts: &mut Parts, body: Bytes, shared: &Shared) -> Subject {
    let authority = match parts.uri.authority() {
        Some(authority) => authority.as_str().to_ascii_lowercase(),
        None => parts
            .headers
            .get(header::HOST)
            .map(|host| String::from_utf8_lossy(host.as_bytes()).to_ascii_lowercase())
            .unwrap_or_default(),
    };
    Subject {
        method: parts.method.clone(),
        authority: authority.into(),
        path: parts.uri.path().into(),
        query: parts.uri.query().map(Into::into),
        headers: std::mem::take(&mut parts.headers),
        body,
        secret: shared.secret.clone(),
    }
}

fn too_large(settings: &Settings) -> Problem {
    let detail = format!("The body is over {} bytes.", settings.max_request_body);
    Problem::new(Code::RequestTooLarge, Known::NotSent, detail)
}

fn overloaded(detail: &'static str) -> Problem {
    Problem::new(Code::Overloaded, Known::NotSent, detail)
}
