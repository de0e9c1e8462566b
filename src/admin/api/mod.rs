//! The operator's API over the keys: `/api/v1/`, described by `openapi.json`.

mod body;
mod decide;
mod ensemble;
mod guard;
mod keys;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, header};

use super::{Directory, problem::Problem};
use crate::{domain::Secret, ledger::Operator};

/// What the operator's API works on.
#[derive(Clone, Debug)]
pub struct Api {
    pub operator: Arc<dyn Operator>,
    pub directory: Arc<dyn Directory>,
    /// Whoever knows it may use the API. Without one the API is for this machine only: the
    /// listener must be on loopback, and requests that a foreign page could make are refused.
    pub token: Option<Secret>,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

const OPEN_API: &str = include_str!("openapi.json");

/// Every route of it stands behind the guard.
pub(super) fn router(api: Api) -> Router {
    Router::new()
        .route("/api/v1/keys", get(keys::list))
        .route("/api/v1/keys/lookup", post(keys::lookup))
        .route("/api/v1/keys/{id}", get(keys::show))
        .route("/api/v1/keys/{id}/resolve", post(decide::resolve))
        .route("/api/v1/keys/{id}/release", post(decide::release))
        .route("/api/v1/ensemble", get(ensemble::show))
        .route("/api/v1/config", get(config))
        .route("/api/v1/openapi.json", get(async || answer(OPEN_API.to_owned())))
        .route_layer(middleware::from_fn_with_state(api.clone(), guard::guard))
        .with_state(api)
}

async fn config(State(api): State<Api>) -> Response {
    answer(api.directory.config().to_string())
}

/// JSON that nobody may keep.
fn answer(json: String) -> Response {
    ([(header::CONTENT_TYPE, JSON), (header::CACHE_CONTROL, NO_STORE)], json).into_response()
}

/// Of a handler: what went well, or what is wrong.
type Answered = Result<Response, Problem>;
