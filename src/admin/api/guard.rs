//! Who may use the API: whoever knows the token, or without one whoever is on this machine.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header, uri::Authority};
use sha2::{Digest, Sha256};

use super::{
    super::problem::{Code, Problem},
    Api,
};
use crate::domain::Secret;

pub(super) async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    match check(&api, request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(api: &Api, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let is_write = !matches!(*method, Method::GET | Method::HEAD);
    match &api.token {
        Some(token) => {
            if !is_authorised(token, headers) {
                let detail = "the API needs `Authorization: Bearer` with the admin token";
                return Err(Problem::new(Code::Unauthorized, detail));
            }
        }
        None => is_local(is_write, uri, headers)?,
    }
    if is_write && !is_json(headers) {
        let detail = "a request that changes something must be `Content-Type: application/json`";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    Ok(())
}

fn is_authorised(token: &Secret, headers: &HeaderMap) -> bool {
    let Lines::One(given) = Lines::of(headers, &header::AUTHORIZATION) else { return false };
    let given = given.as_bytes();
    let is_bearer = given.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "));
    is_bearer && is_same(given[7..].trim_ascii(), token.expose())
}

/// Takes the same time wherever the two differ, and whatever their lengths are.
fn is_same(given: &[u8], wanted: &[u8]) -> bool {
    let (given, wanted) = (Sha256::digest(given), Sha256::digest(wanted));
    let differing = given.iter().zip(&wanted).fold(0, |bits, (a, b)| bits | (a ^ b));
    std::hint::black_box(differing) == 0
}

/// Without a token the address is the only guard, and a browser on this machine gets around it: a
/// foreign page can post to it, or have its own name point to it (DNS rebinding).
fn is_local(is_write: bool, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let forbidden = || {
        let detail = "without an admin token the API answers to a loopback `Host` only";
        Problem::new(Code::ForbiddenHost, detail)
    };
    let Lines::One(host) = Lines::of(headers, &header::HOST) else { return Err(forbidden()) };
    let named = std::str::from_utf8(host.as_bytes()).ok().and_then(|host| host.parse().ok());
    let authorities = [named.as_ref(), uri.authority()];
    if named.is_none() || !authorities.into_iter().flatten().all(is_loopback) {
        return Err(forbidden());
    }
    if !is_write {
        return Ok(());
    }
    let own = |origin: &HeaderValue| {
        let origin = std::str::from_utf8(origin.as_bytes()).unwrap_or_default();
        let authority = origin.strip_prefix("http://").and_then(|rest| rest.parse().ok());
        authority.is_some_and(|authority: Authority| Some(authority) == named)
    };
    match Lines::of(headers, &header::ORIGIN) {
        Lines::None => Ok(()),
        Lines::One(origin) if own(origin) => Ok(()),
        Lines::One(_) | Lines::Several => {
            let detail = "a page of another origin may not change anything here";
            Err(Problem::new(Code::ForbiddenOrigin, detail))
        }
    }
}

fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// The lines of one name. Which of several counts is anyone's guess, so none does.
enum Lines<'a> {
    None,
    One(&'a HeaderValue),
    Several,
}

fn is_json(headers: &HeaderMap) -> bool {
    let Lines::One(value) = Lines::of(headers, &header::CONTENT_TYPE) else { return false };
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

// === impl Lines ===

impl<'a> Lines<'a> {
    fn of(headers: &'a HeaderMap, name: &HeaderName) -> Self {
        let mut lines = headers.get_all(name).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Self::None,
            (Some(line), None) => Self::One(line),
            (Some(_), Some(_)) => Self::Several,
        }
    }
}
