//! A record as the ensemble has it: the value, and what the servers know about it.

use std::time::Duration;

use bytes::Bytes;
use zookeeper_client::Stat;

use super::time::ServerTime;
use crate::{
    domain::{FencingToken, Timestamp},
    ledger::{LedgerError, codec::Stored},
    telemetry,
};

/// A readable record.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) stored: Stored,
    /// Of the node's data, from 0.
    pub(super) version: i32,
    pub(super) is_expired: bool,
    expires_at: Timestamp,
}

// === impl Found ===

impl Found {
    /// The servers' stamps win over what a gateway wrote into the value: the token of an intent
    /// is the transaction that wrote it, and a record's retention starts when it was written.
    pub(super) fn read(
        (data, stat): (Vec<u8>, Stat),
        time: &ServerTime,
    ) -> Result<Self, LedgerError> {
        let mut stored = Stored::decode(&Bytes::from(data)).map_err(|error| {
            tracing::error!(%error, zxid = stat.mzxid, "record is unreadable, its key is refused");
            telemetry::record_unreadable();
            LedgerError::RecordUnreadable { reason: error.to_string() }
        })?;
        let written_at = time.at(stat.mtime);
        let expires_at = match &mut stored {
            Stored::Completed(record) => {
                let retention = record.expires_at.since(record.completed_at);
                record.completed_at = written_at;
                record.expires_at = written_at.after(retention);
                record.expires_at
            }
            Stored::Intent { intent, .. } => {
                if intent.token == UNSTAMPED {
                    intent.token = token(stat.mzxid);
                }
                match intent.retention.unknown {
                    Some(retention) => written_at.after(retention),
                    None => Timestamp::from_millis(u64::MAX),
                }
            }
        };
        let is_expired = time.is_past(expires_at);
        Ok(Self { stored, version: stat.version, is_expired, expires_at })
    }

    /// Whether it is expired for so long at least.
    pub(super) fn is_expired_for(&self, grace: Duration, time: &ServerTime) -> bool {
        time.is_past(self.expires_at.after(grace))
    }
}

/// In the value of an intent whose token is the transaction that writes it.
pub(super) const UNSTAMPED: FencingToken = FencingToken::new(0);

/// Grows with every transaction of the ensemble, over all keys and leaders.
pub(super) fn token(zxid: i64) -> FencingToken {
    FencingToken::new(u64::try_from(zxid).unwrap_or_default())
}
