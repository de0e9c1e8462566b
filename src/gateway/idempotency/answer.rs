//! From a verdict to the answer that its client gets.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::{Settings, execute::Live};
use crate::{
    arbiter::{Disposition, Refusal, Verdict},
    domain::{Record, StoredBody, StoredResponse},
    gateway::{
        RequestId, ResponseBody,
        headers::IDEMPOTENCY_EXPIRES,
        problem::{Problem, STRIPE_SHOULD_RETRY, refuse},
    },
    telemetry::Outcome,
};

const TRUE: HeaderValue = HeaderValue::from_static("true");
const FALSE: HeaderValue = HeaderValue::from_static("false");

pub(super) fn answer<B>(
    verdict: Verdict<Live<B>>,
    settings: &Settings,
    request_id: &RequestId,
) -> Response<ResponseBody<B>> {
    match verdict {
        Verdict::Executed { mut live, record } => {
            request_id.set_if_missing(live.headers_mut());
            let status = live.status();
            mark_stored(live.headers_mut(), status, &record);
            ended(live, Outcome::Executed)
        }
        Verdict::Passed { mut live, disposition } => {
            request_id.set_if_missing(live.headers_mut());
            let outcome = match disposition {
                Disposition::Release => Outcome::Released,
                Disposition::Unknown | Disposition::Store => Outcome::UpstreamUnknown,
            };
            ended(live, outcome)
        }
        Verdict::Shared { response } => match &response.body {
            StoredBody::Kept(body) => {
                let mut response = stored(&response, body.clone());
                request_id.set(response.headers_mut());
                ended(response, Outcome::Joined)
            }
            StoredBody::TooLarge => refuse(Refusal::OutcomeUnknown.into(), request_id),
        },
        Verdict::Replay { record, joined } => {
            let StoredBody::Kept(body) = &record.response.body else {
                return refuse(Problem::not_replayable(&record), request_id);
            };
            let mut response = stored(&record.response, body.clone());
            let status = response.status();
            let headers = response.headers_mut();
            mark_stored(headers, status, &record);
            headers.insert(settings.replay_header.clone(), TRUE);
            request_id.set(headers);
            ended(response, if joined { Outcome::Joined } else { Outcome::Replayed })
        }
        Verdict::Refused(refusal) => refuse(refusal.into(), request_id),
    }
}

fn stored<B>(response: &StoredResponse, body: Bytes) -> Response<ResponseBody<B>> {
    let mut answer = Response::new(ResponseBody::whole(body));
    *answer.status_mut() = response.status;
    answer.headers_mut().clone_from(&response.headers);
    answer
}

/// Adds what every stored answer carries, the first time and each time again.
fn mark_stored(headers: &mut HeaderMap, status: StatusCode, record: &Record) {
    let expires = record.expires_at.to_string();
    if let Ok(expires) = HeaderValue::from_maybe_shared(Bytes::from(expires)) {
        headers.insert(IDEMPOTENCY_EXPIRES, expires);
    }
    // SDKs send a 409 or 5xx again by default, and would hammer an answer that never changes.
    if status == StatusCode::CONFLICT || status.is_server_error() {
        headers.entry(STRIPE_SHOULD_RETRY).or_insert(FALSE);
    }
}

/// Notes for the log and the metrics how the request ended.
fn ended<B>(
    mut response: Response<ResponseBody<B>>,
    outcome: Outcome,
) -> Response<ResponseBody<B>> {
    response.extensions_mut().insert(outcome);
    response
}
