//! What the operator's API asks of the running gateway.

use std::{fmt, sync::Arc, time::Duration};

use http::HeaderMap;

use crate::domain::{KeyError, KeyId, ScopeMissing};

/// Knows the configuration in effect, also after a reload.
pub trait Directory: fmt::Debug + Send + Sync + 'static {
    /// The id under which the ledger has this key.
    fn key_id(&self, name: &KeyName) -> Result<KeyId, NameError>;

    /// Requests of this process that wait for the key.
    fn waiters(&self, key: &KeyId) -> usize;

    /// How long a call of this route's upstream takes at most; of any upstream, if there is no such
    /// route any more.
    fn longest_call(&self, route: &str) -> Duration;

    /// The configuration in effect as JSON, without its secrets.
    fn config(&self) -> Arc<str>;
}

/// A key as its client knows it.
#[derive(Clone)]
pub struct KeyName {
    /// The route's name.
    pub route: String,
    /// With or without quotes, as in the header.
    pub key: String,
    /// At least the headers that the route's scope names.
    pub scope: HeaderMap,
}

/// Why a name leads to no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("there is no route of this name")]
    NoRoute,
    #[error("the route has no idempotency, and so no keys")]
    NotKeyed,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("the scope is not complete: {0}")]
    Scope(#[from] ScopeMissing),
}

// === impl KeyName ===

impl fmt::Debug for KeyName {
    /// Scope values are credentials, and keys can carry order numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyName").field("route", &self.route).finish_non_exhaustive()
    }
}
