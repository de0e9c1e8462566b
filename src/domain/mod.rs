//! The words the rest of the crate speaks: key, scope, fingerprint, intent, record, clock.

mod clock;
mod digest;
mod fingerprint;
mod intent;
mod key;
mod key_id;
mod peer;
mod record;
mod response;
mod scope;
mod secret;
mod tether;
mod token;
mod trace;

#[cfg(test)]
pub(crate) use self::clock::Hands;
pub use self::{
    clock::{BootInstant, Clock, Timestamp},
    fingerprint::{BodyMode, Fingerprint, Recipe, Subject, is_json_pointer},
    intent::{AttemptId, Cause, Intent, Origin, Retention},
    key::{IdempotencyKey, KeyError, KeyFormat, KeyRules},
    key_id::{KeyId, NotKeyId},
    peer::Peer,
    record::Record,
    response::{StoredBody, StoredResponse},
    scope::{Scope, ScopeMissing, ScopeRule, ScopeSource},
    secret::Secret,
    tether::{Tether, Tethered},
    token::FencingToken,
    trace::TracePoint,
};
