//! Which requests go where, and what an idempotency key means on the way.

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderName, Method, StatusCode};

use crate::domain::{BodyMode, KeyRules, Retention, ScopeRule};

/// Routes are tried in file order; the first match wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub name: String,
    pub matching: Match,
    /// The index of the route's upstream in `Config::upstreams`.
    pub upstream: usize,
    /// Without it requests are proxied and streamed.
    pub idempotency: Option<Idempotency>,
}

/// What a request must look like; all that is given must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Lower case, without a port; an IPv6 address in brackets.
    pub host: Option<String>,
    /// Starts with a slash and ends with none, except for `/` itself. Matches whole segments.
    pub path_prefix: String,
    /// `None` matches every method. Never empty.
    pub methods: Option<Vec<Method>>,
}

/// What a route promises about keyed requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The header that carries the key.
    pub header: HeaderName,
    /// Whether a request of a keyed method without a key is refused.
    pub required: bool,
    pub scope: ScopeRule,
    /// The route's name unless written.
    pub namespace: String,
    pub key: KeyRules,
    pub fingerprint: FingerprintRule,
    pub in_progress: InProgress,
    pub unknown_outcome: UnknownOutcome,
    pub on_session_loss: OnSessionLoss,
    pub retention: Retention,
    /// In bytes.
    pub max_request_body: u64,
    /// In bytes; an answer of exactly this size is kept.
    pub max_stored_body: u64,
    pub responses: Responses,
    pub forward_key: ForwardKey,
    /// Set to `true` on an answer that was given before.
    pub replay_header: HeaderName,
    /// Left out of a replay, beside those that are always left out.
    pub drop_headers: Vec<HeaderName>,
}

/// What of a request, beside method, authority, path and query, a retry must repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintRule {
    pub body: BodyMode,
    pub headers: Vec<HeaderName>,
}

/// What happens to a retry whose first request still runs elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InProgress {
    Wait(Duration),
    Reject,
}

/// What happens to a retry when nobody knows whether an earlier attempt ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownOutcome {
    Reject,
    Retry {
        /// In a key's life, the first one included; at least 2.
        attempts: u32,
    },
}

/// What happens to an upstream call whose session is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnSessionLoss {
    #[default]
    Abort,
    Settle,
}

/// What becomes of a key after an answer of the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Final: kept and replayed.
    Store,
    /// Nothing ran: passed on, and the key is free again.
    Release,
    /// Passed on; the key's outcome is unknown.
    Unknown,
}

/// A route's own table of dispositions; what it does not name falls to the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    pub exact: BTreeMap<StatusCode, Disposition>,
    /// By the first digit of the status, 2 to 5.
    pub classes: BTreeMap<u16, Disposition>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardKey {
    #[default]
    Pass,
    Strip,
}

// === impl Route ===

impl Route {
    /// Whether a request of this method is a keyed one, given that the route matches it.
    pub fn is_keyed(&self, method: &Method) -> bool {
        self.idempotency.is_some() && self.keyed_methods().contains(method)
    }

    /// The methods that idempotency is about: the route's own, or else POST and PATCH.
    pub fn keyed_methods(&self) -> &[Method] {
        match &self.matching.methods {
            Some(methods) => methods,
            None => &[Method::POST, Method::PATCH],
        }
    }
}

// === impl Match ===

impl Match {
    /// Whether every request that `other` matches is matched by this too.
    pub fn covers(&self, other: &Self) -> bool {
        let methods = match (&self.methods, &other.methods) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => other.iter().all(|method| own.contains(method)),
        };
        methods
            && (self.host.is_none() || self.host == other.host)
            && covers_path(&self.path_prefix, &other.path_prefix)
    }

    /// Whether there is a request that both match.
    pub fn overlaps(&self, other: &Self) -> bool {
        let methods = match (&self.methods, &other.methods) {
            (None, _) | (_, None) => true,
            (Some(own), Some(other)) => other.iter().any(|method| own.contains(method)),
        };
        let hosts = match (&self.host, &other.host) {
            (Some(own), Some(other)) => own == other,
            (None, _) | (_, None) => true,
        };
        methods
            && hosts
            && (covers_path(&self.path_prefix, &other.path_prefix)
                || covers_path(&other.path_prefix, &self.path_prefix))
    }
}

/// By whole segments.
fn covers_path(prefix: &str, path: &str) -> bool {
    prefix == "/"
        || path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

// === impl Responses ===

impl Responses {
    /// What the route's own table says; an exact status beats a class.
    pub fn disposition(&self, status: StatusCode) -> Option<Disposition> {
        self.exact.get(&status).or_else(|| self.classes.get(&(status.as_u16() / 100))).copied()
    }
}
