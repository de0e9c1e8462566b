//! One execution: call the wrapped service, capture its answer up to the bound.

use std::error::Error;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Body;
use http_body_util::BodyExt;
use tower::Service;

use super::{OpensGate, Settings};
use crate::{
    BoxError,
    arbiter::{Attempt, Execution},
    domain::{StoredBody, StoredResponse, Subject},
    gateway::{ResponseBody, gather::Gathered, headers, proxy::UpstreamError},
};

/// An answer on its way to the client that executes.
pub(super) type Live<B> = Response<ResponseBody<B>>;

/// A body that was read up to a bound.
enum Captured<B> {
    Whole(Bytes),
    /// It is larger. What was read, and the rest.
    Larger(Bytes, B),
}

/// Calls `service`, which must be ready, for the one attempt that may reach the upstream.
pub(super) async fn execute<S, ReqBody, ResBody>(
    mut service: S,
    request: Request<ReqBody>,
    attempt: Attempt,
    settings: &Settings,
) -> Execution<Live<ResBody>>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>, Error: Into<BoxError>>,
    ResBody: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    match settings.opens_gate {
        OpensGate::Layer if attempt.gate.open().is_err() => return Execution::Lapsed,
        OpensGate::Layer | OpensGate::Service => {}
    }
    let response = match service.call(request).await {
        Ok(response) => response,
        Err(error) => return failed(&error.into()),
    };
    let (mut parts, body) = response.into_parts();
    let retry_after = parts.headers.contains_key(header::RETRY_AFTER);
    let responses = &settings.policy.responses;
    let disposition = responses.disposition(parts.status, retry_after, attempt.number);
    let captured = match capture(body, settings.max_stored_body).await {
        Ok(captured) => captured,
        Err(error) => return failed(&error),
    };
    headers::strip_response(&mut parts.headers, parts.status);
    let kept =
        headers::storable(parts.headers.clone(), &settings.replay_header, &settings.drop_headers);
    let (stored, live) = match captured {
        Captured::Whole(bytes) => (StoredBody::Kept(bytes.clone()), ResponseBody::whole(bytes)),
        Captured::Larger(first, rest) => (StoredBody::TooLarge, ResponseBody::resumed(first, rest)),
    };
    let stored = StoredResponse { status: parts.status, headers: kept, body: stored }.compact();
    Execution::Answered { stored, disposition, live: Response::from_parts(parts, live) }
}

/// Puts together what the wrapped service is called with.
pub(super) fn request<B: From<Bytes>>(
    mut parts: http::request::Parts,
    subject: &Subject,
    attempt: &Attempt,
    settings: &Settings,
) -> Request<B> {
    parts.headers.clone_from(&subject.headers);
    if !settings.forward_key {
        parts.headers.remove(&settings.header);
    }
    headers::add_attempt(&mut parts.headers, attempt.number, attempt.token);
    parts.extensions.insert(attempt.gate.clone());
    Request::from_parts(parts, B::from(subject.body.clone()))
}

/// Reads a body up to `bound` bytes; a body of exactly `bound` bytes is whole.
async fn capture<B>(body: B, bound: u64) -> Result<Captured<B>, BoxError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let mut body = body;
    let mut gathered = Gathered::default();
    while let Some(frame) = body.frame().await {
        // Trailers are about the transfer that ends here.
        let Ok(data) = frame.map_err(Into::into)?.into_data() else { continue };
        gathered.push(data);
        if gathered.len() > bound {
            return Ok(Captured::Larger(gathered.into_bytes(), body));
        }
    }
    Ok(Captured::Whole(gathered.into_bytes()))
}

/// What an error of the wrapped service says about the attempt.
fn failed<L>(error: &BoxError) -> Execution<L> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&**error);
    while let Some(error) = cause {
        match error.downcast_ref::<UpstreamError>() {
            Some(UpstreamError::NotSent(_)) => return Execution::NotSent,
            Some(UpstreamError::Lapsed) => return Execution::Lapsed,
            Some(UpstreamError::TimedOut) => return Execution::TimedOut,
            Some(UpstreamError::Interrupted(_) | UpstreamError::RequestBody(_)) => {
                return Execution::Interrupted;
            }
            None => cause = error.source(),
        }
    }
    // Another service's error does not tell whether it acted.
    Execution::Interrupted
}
