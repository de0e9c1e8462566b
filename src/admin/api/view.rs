//! What the API says of a key: facts about request and answer, never their bytes.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    domain::{BodyMode, Fingerprint, KeyId, Timestamp},
    ledger::{Answer, Entry, KeyState, Page},
};

/// The members, in the order in which a person reads them.
#[derive(Serialize)]
struct View {
    id: String,
    state: &'static str,
    route: String,
    attempt: u32,
    fencing_token: u64,
    /// Whether an attempt before this one may have reached the upstream.
    earlier_attempt_may_have_run: bool,
    gateway: String,
    request_id: String,
    begun_at: Option<String>,
    since: String,
    expires_at: Option<String>,
    cause: Option<String>,
    waiters: usize,
    request: Value,
    response: Option<Value>,
}

#[derive(Serialize)]
struct PageView {
    keys: Vec<View>,
    unreadable: Vec<String>,
    next: Option<String>,
}

pub(super) fn entry(entry: &Entry, waiters: usize) -> String {
    text(&view(entry, waiters))
}

pub(super) fn page(page: &Page, waiters: impl Fn(&KeyId) -> usize) -> String {
    let keys = page.entries.iter().map(|entry| view(entry, waiters(&entry.key)));
    text(&PageView {
        keys: keys.collect(),
        unreadable: page.unreadable.iter().map(ToString::to_string).collect(),
        next: page.next.clone(),
    })
}

pub(super) fn absent(key: &KeyId) -> String {
    json!({ "id": key.to_string(), "state": "absent" }).to_string()
}

fn text(view: &impl Serialize) -> String {
    serde_json::to_string(view).expect("names are strings, and nothing in it can fail")
}

fn view(entry: &Entry, waiters: usize) -> View {
    View {
        id: entry.key.to_string(),
        state: state(entry.state),
        route: entry.origin.route.to_string(),
        attempt: entry.attempt,
        fencing_token: entry.token.get(),
        earlier_attempt_may_have_run: entry.may_have_run,
        gateway: entry.origin.gateway.to_string(),
        request_id: entry.origin.request_id.to_string(),
        begun_at: entry.begun_at.map(Timestamp::to_rfc3339),
        since: entry.since.to_rfc3339(),
        expires_at: entry.expires_at.map(Timestamp::to_rfc3339),
        cause: entry.cause.map(|cause| cause.to_string()),
        waiters,
        request: request(&entry.fingerprint),
        response: entry.answer.as_ref().map(response),
    }
}

const fn state(state: KeyState) -> &'static str {
    match state {
        KeyState::InProgress => "in_progress",
        KeyState::Unknown => "unknown",
        KeyState::Completed => "completed",
    }
}

fn request(fingerprint: &Fingerprint) -> Value {
    let body = match &fingerprint.recipe.body {
        BodyMode::Raw => "raw",
        BodyMode::Json { .. } => "json",
        BodyMode::Form => "form",
        BodyMode::Multipart => "multipart",
        BodyMode::None => "none",
    };
    let digest = fingerprint.digest.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string cannot fail.
        write!(digits, "{byte:02x}").ok();
        digits
    });
    let headers: Vec<&str> =
        fingerprint.recipe.headers.iter().map(http::HeaderName::as_str).collect();
    json!({ "fingerprint": digest, "compared_body": body, "compared_headers": headers })
}

fn response(answer: &Answer) -> Value {
    let headers: Vec<&str> = answer.headers.iter().map(http::HeaderName::as_str).collect();
    json!({
        "status": answer.status.as_u16(),
        "headers": headers,
        "body_bytes": answer.body,
        "replayable": answer.body.is_some(),
    })
}
