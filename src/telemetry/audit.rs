//! The audit log: one event for each thing that an operator did to a key, or was refused.

use std::net::SocketAddr;

use crate::domain::KeyId;

/// Who did what to which key, from where and why.
///
/// Never give it a body, a header value, a scope value or a credential.
#[derive(Clone, Copy, Debug)]
pub struct Audit<'a> {
    pub action: &'static str,
    pub key: &'a KeyId,
    /// What came of it: `done`, or the code of the refusal.
    pub result: &'static str,
    /// Who the operator says to be.
    pub actor: Option<&'a str>,
    /// Where the request came from.
    pub peer: Option<SocketAddr>,
    pub reason: &'a str,
    /// Of the answer that was decided on.
    pub status: Option<u16>,
}

/// These events are logged whatever the level of the log is.
pub(super) const TARGET: &str = "audit";

// === impl Audit ===

impl Audit<'_> {
    /// Writes the event at level info.
    pub fn log(&self) {
        tracing::info!(
            target: TARGET,
            action = self.action,
            key_id = %self.key,
            result = self.result,
            actor = self.actor,
            peer = self.peer.map(tracing::field::display),
            reason = self.reason,
            status = self.status,
            "operator acted"
        );
    }
}
