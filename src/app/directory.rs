//! What the operator's API asks of the configuration in effect and of the requests in flight.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};
use tokio::sync::watch;

use crate::{
    admin::{self, KeyName, NameError},
    arbiter::Arbiter,
    config::Config,
    domain::{IdempotencyKey, KeyError, KeyId, Scope},
};

/// Follows reloads.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    config: watch::Receiver<Arc<Config>>,
    arbiter: Arbiter,
}

/// The id of a key under `config`, as the gateway computes it for a request.
pub fn key_id(config: &Config, name: &KeyName) -> Result<KeyId, NameError> {
    let route = config.routes.iter().find(|route| route.name == name.route);
    let route = route.ok_or(NameError::NoRoute)?;
    let rules = route.idempotency.as_ref().ok_or(NameError::NotKeyed)?;
    let line = HeaderValue::from_str(&name.key).map_err(|_| KeyError::Malformed { at: 0 })?;
    let headers = HeaderMap::from_iter([(rules.header.clone(), line)]);
    let key = IdempotencyKey::read(&headers, &rules.header, rules.key)?.ok_or(KeyError::Empty)?;
    let scope = Scope::read(&name.scope, &rules.scope)?;
    Ok(KeyId::new(config.key_secret.as_ref(), &rules.namespace, &scope, &key))
}

// === impl Directory ===

impl Directory {
    pub(super) fn new(config: watch::Receiver<Arc<Config>>, arbiter: Arbiter) -> Self {
        Self { config, arbiter }
    }
}

impl admin::Directory for Directory {
    fn key_id(&self, name: &KeyName) -> Result<KeyId, NameError> {
        key_id(&self.config.borrow(), name)
    }

    fn waiters(&self, key: &KeyId) -> usize {
        self.arbiter.waiters(key)
    }

    fn longest_call(&self, route: &str) -> Duration {
        let config = self.config.borrow();
        let upstreams = &config.upstreams;
        let route = config.routes.iter().find(|known| known.name == route);
        match route.and_then(|route| upstreams.get(route.upstream)) {
            Some(upstream) => upstream.request_timeout,
            None => upstreams.iter().map(|it| it.request_timeout).max().unwrap_or_default(),
        }
    }

    fn config(&self) -> Arc<str> {
        self.config.borrow().to_masked_json().to_string().into()
    }
}
