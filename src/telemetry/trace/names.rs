//! The name of every attribute of a span.

pub(super) const METHOD: &str = "http.request.method";
pub(super) const STATUS: &str = "http.response.status_code";
pub(super) const ROUTE: &str = "oncegate.route";
pub(super) const OUTCOME: &str = "oncegate.outcome";
pub(super) const ATTEMPT: &str = "oncegate.attempt";
pub(super) const FENCING_TOKEN: &str = "oncegate.fencing_token";
pub(super) const IDEMPOTENCY_KEY: &str = "oncegate.idempotency_key";
pub(super) const REQUEST_ID: &str = "oncegate.request_id";
pub(super) const UPSTREAM: &str = "oncegate.upstream";
pub(super) const ERROR: &str = "error.type";
