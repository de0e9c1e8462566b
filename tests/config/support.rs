//! A small file that is right, and ways to change it.

use std::collections::BTreeMap;

use oncegate::config::{self, Config, Idempotency};

/// Only what must be written.
pub(crate) const SMALLEST: &str = "\
listen: { address: '127.0.0.1:8080' }
admin: { address: '127.0.0.1:9090' }
ledger: { kind: embedded, embedded: { path: ledger.redb } }
upstreams:
  payments: { endpoints: ['http://127.0.0.1:9000'] }
routes:
  - name: charges
    match: { path_prefix: /v1/charges }
    upstream: payments
    idempotency: { scope: [X-Api-Key] }
";

pub(crate) fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn read(text: &str) -> Config {
    read_in(text, &[])
}

pub(crate) fn read_in(text: &str, pairs: &[(&str, &str)]) -> Config {
    match config::parse("x.yaml", text.as_bytes(), &environment(pairs)) {
        Ok(loaded) => loaded.config,
        Err(mistakes) => panic!("{}\n{text}", config::render_mistakes(&mistakes)),
    }
}

/// The smallest file with more fields in its `idempotency` block.
pub(crate) fn with_rules(fields: &str) -> Idempotency {
    rules_of(read(&SMALLEST.replace("[X-Api-Key] }", &format!("[X-Api-Key], {fields} }}"))))
}

pub(crate) fn rules_of(mut config: Config) -> Idempotency {
    config.routes.remove(0).idempotency.unwrap()
}
