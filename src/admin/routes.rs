//! What is answered at which path. Nothing outside of `/api/` needs the admin token.

use std::fmt::Display;

use axum::{
    Router,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};

use super::{
    Api, Readiness, api,
    problem::{Code, Problem},
};
use crate::telemetry::Metrics;

/// The admin listener's service.
pub(super) fn router(readiness: Readiness, metrics: Metrics, keys: Option<Api>) -> Router {
    Router::new()
        .route("/livez", get(async || text(StatusCode::OK, "ok")))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(render_metrics).with_state(metrics))
        .merge(keys.map(api::router).unwrap_or_default())
        .fallback(async || Problem::new(Code::NotFound, "nothing is at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(Code::MethodNotAllowed, "this path answers the methods that Allow names")
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
