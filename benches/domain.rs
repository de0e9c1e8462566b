//! What admission costs per request: key, key id and fingerprint.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::{hint::black_box, sync::Arc};

use bytes::Bytes;
use divan::{Bencher, counter::BytesCount};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use oncegate::domain::{
    BodyMode, IdempotencyKey, KeyFormat, KeyId, KeyRules, Recipe, Scope, ScopeRule, ScopeSource,
    Secret, Subject,
};

const NAME: HeaderName = HeaderName::from_static("idempotency-key");
const RULES: KeyRules = KeyRules { max_length: 255, format: KeyFormat::Any };

fn main() {
    divan::main();
}

fn headers(value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(NAME, HeaderValue::from_static(value))])
}

fn read(headers: &HeaderMap) -> IdempotencyKey {
    IdempotencyKey::read(headers, &NAME, RULES).unwrap().unwrap()
}

#[divan::bench(args = ["8e03978e-40d5-43e8-bc93-6894a57f9324", "\"8e03978e-40d5-43e8-bc93-6894a57f9324\""])]
fn key(bencher: Bencher<'_, '_>, value: &'static str) {
    let headers = headers(value);
    bencher.bench(|| read(black_box(&headers)));
}

#[divan::bench]
fn scope(bencher: Bencher<'_, '_>) {
    let rule = ScopeRule { source: ScopeSource::Headers(vec![NAME]), anonymous: false };
    let headers = headers("sk_live_4eC39HqLyjWDarjtT1zdp7dc");
    bencher.bench(|| Scope::read(black_box(&headers), &rule));
}

#[divan::bench(args = [false, true])]
fn key_id(bencher: Bencher<'_, '_>, keyed: bool) {
    let secret = keyed.then(|| Secret::new([7; 32]));
    let headers = headers("8e03978e-40d5-43e8-bc93-6894a57f9324");
    let rule = ScopeRule { source: ScopeSource::None, anonymous: false };
    let (scope, key) = (Scope::read(&headers, &rule).unwrap(), read(&headers));
    bencher.bench(|| KeyId::new(secret.as_ref(), "charges", black_box(&scope), &key));
}

#[divan::bench(args = [1024, 64 * 1024])]
fn fingerprint_raw(bencher: Bencher<'_, '_>, length: usize) {
    fingerprint(bencher, BodyMode::Raw, vec![b'a'; length]);
}

#[divan::bench(args = [1024, 64 * 1024])]
fn fingerprint_json(bencher: Bencher<'_, '_>, length: usize) {
    let charge = r#"{"to":"acct_1","amount":1250,"currency":"eur","rate":0.25}"#;
    let charges = vec![charge; length / charge.len()].join(",");
    fingerprint(bencher, BodyMode::Json { ignore: Vec::new() }, format!("[{charges}]"));
}

fn fingerprint(bencher: Bencher<'_, '_>, body_mode: BodyMode, body: impl Into<Bytes>) {
    let recipe =
        Recipe { version: Recipe::VERSION, body: body_mode, headers: Vec::new(), authority: true };
    let recipe = Arc::new(recipe);
    let subject = Subject {
        method: Method::POST,
        authority: "api.example.com".into(),
        path: "/v1/charges".into(),
        query: None,
        headers: HeaderMap::new(),
        body: body.into(),
        secret: None,
    };
    let bytes = BytesCount::new(subject.body.len());
    bencher.counter(bytes).bench(|| black_box(&subject).fingerprint(&recipe));
}
