//! What is answered at which path. None of these needs the admin token.

use std::fmt::Display;

use axum::{
    Router,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};

use super::Readiness;
use crate::telemetry::Metrics;

/// The admin listener's service.
pub(super) fn router(readiness: Readiness, metrics: Metrics) -> Router {
    Router::new()
        .route("/livez", get(async || text(StatusCode::OK, "ok")))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(render_metrics).with_state(metrics))
        .fallback(async || problem(StatusCode::NOT_FOUND, "not-found", "nothing is at this path"))
        .method_not_allowed_fallback(async || {
            problem(
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "this path answers GET and HEAD",
            )
        })
}

async fn readyz(State(readiness): State<Readiness>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let excludes_ledger = form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| name == "exclude" && value == "ledger");
    match readiness.check(!excludes_ledger) {
        Ok(()) => text(StatusCode::OK, "ok"),
        Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format_args!("not ready: {reason}")),
    }
}

async fn render_metrics(State(metrics): State<Metrics>) -> Response {
    ([(header::CONTENT_TYPE, Metrics::CONTENT_TYPE)], metrics.render()).into_response()
}

/// A line for people and probes, which nobody may keep.
fn text(status: StatusCode, line: impl Display) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, format!("{line}\n")).into_response()
}

/// An error as RFC 9457 describes it.
fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "application/problem+json"), (header::CACHE_CONTROL, "no-store")];
    let body = serde_json::json!({
        "type": format!("urn:oncegate:problem:{code}"),
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": detail,
        "code": code,
    });
    (status, headers, body.to_string()).into_response()
}
