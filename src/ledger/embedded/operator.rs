//! What an operator sees of this ledger, and how a decision is made and stored.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{
    Embedded,
    core::{Core, closed},
    held,
    list::list,
    operation::Operation,
    settings::Durability,
    store::{Change, Found, Place},
    table::{Claim, Taken},
};
use crate::{
    domain::{Intent, KeyId, Record, StoredResponse},
    ledger::{
        BoxFuture, DecideError, Ended, Ensemble, Entry, LedgerError, ListError, Operator, Page,
        Query,
        codec::{Stored, encode_record},
    },
};

/// The key's lock, and what is stored under it.
struct Turn {
    claim: Claim,
    intent: Intent,
    /// `None` for an intent that a holder of this process left without an end.
    place: Option<Place>,
}

/// What is stored; without a place it stands among what is held.
type Value = (Stored, Option<Place>);

/// A holder of this process is known to be gone only when the process is: an attempt that is
/// bounded by `request_timeout` ends by itself, and one whose answer cannot be stored must keep
/// the key until it can.
const NOT_FORCED: &str = "the holder is this process, whose attempts end by themselves within \
                          request_timeout; to end it now stop the gateway, after which the key is \
                          unknown";

impl Operator for Embedded {
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Page, ListError>> {
        let core = Arc::clone(&self.core);
        // A walk through the file blocks.
        let listing = tokio::task::spawn_blocking(move || list(&core, &query));
        Box::pin(async move {
            match listing.await {
                Ok(page) => page,
                Err(_panicked_or_cancelled) => Err(closed().into()),
            }
        })
    }

    fn show(&self, key: KeyId) -> BoxFuture<'_, Result<Option<Entry>, LedgerError>> {
        Box::pin(show(&self.core, key))
    }

    fn resolve(
        &self,
        key: KeyId,
        answer: StoredResponse,
    ) -> BoxFuture<'_, Result<Arc<Record>, DecideError>> {
        Box::pin(async move {
            let Turn { claim, intent, place } = turn(&self.core, key).await?;
            let record = held::completed(intent, answer, self.core.now());
            let at = Place { expires_at: record.expires_at, token: record.token };
            let value = Some((at, encode_record(&record)));
            let change = Change::Decide { key, replaces: place, record: value };
            let record = Arc::new(record);
            decide(&self.core, change, claim, Ended::Completed(Arc::clone(&record))).await?;
            Ok(record)
        })
    }

    fn release(&self, key: KeyId) -> BoxFuture<'_, Result<(), DecideError>> {
        Box::pin(async move {
            let Turn { claim, place, .. } = turn(&self.core, key).await?;
            let change = Change::Decide { key, replaces: place, record: None };
            decide(&self.core, change, claim, Ended::Released).await
        })
    }

    fn force(&self, key: KeyId, _longest_call: Duration) -> BoxFuture<'_, Result<(), DecideError>> {
        Box::pin(async move {
            match turn(&self.core, key).await {
                Ok(_unknown) => Err(DecideError::NotHeld),
                Err(DecideError::InProgress) => {
                    Err(DecideError::NotForced { reason: NOT_FORCED.to_owned() })
                }
                Err(other) => Err(other),
            }
        })
    }

    fn describe(&self) -> BoxFuture<'_, Ensemble> {
        let place = match &self.durability {
            Durability::Memory => "memory: a restart forgets every key".to_owned(),
            Durability::Fsync { path } => format!("the file {}", path.display()),
        };
        let trouble = self.core.health().err().map(|error| error.to_string());
        let (servers, sessions) = (Vec::new(), Vec::new());
        let described = Ensemble { kind: "embedded", place, trouble, servers, sessions };
        Box::pin(std::future::ready(described))
    }
}

/// Waits for the key's lock, which only an unknown key gives to an operator.
async fn turn(core: &Arc<Core>, key: KeyId) -> Result<Turn, DecideError> {
    let (claim, stored) = look(core, key).await?;
    let claim = claim.ok_or(DecideError::InProgress)?;
    match stored {
        None => Err(DecideError::Absent),
        Some((Stored::Completed(_), _)) => Err(DecideError::Completed),
        Some((Stored::Intent { intent, .. }, place)) => Ok(Turn { claim, intent, place }),
    }
}

async fn show(core: &Arc<Core>, key: KeyId) -> Result<Option<Entry>, LedgerError> {
    let (claim, stored) = look(core, key).await?;
    // With the claim nobody holds it, and nobody can as long as this looks.
    let is_held = claim.is_none();
    Ok(stored.map(|(stored, place)| entry(key, stored, is_held && place.is_none())))
}

/// The key's lock, unless an attempt holds it, and what is stored.
async fn look(core: &Arc<Core>, key: KeyId) -> Result<(Option<Claim>, Option<Value>), LedgerError> {
    let patience = Instant::now() + core.timeout;
    loop {
        let claim = claim(core, key, patience).await?;
        #[cfg(test)]
        core.driver.look_latency().await;
        match core.store.find(&key) {
            Ok(found) => return Ok((claim, read(core, found)?)),
            Err(error) => {
                drop(claim);
                core.suspect(&error);
                if timeout_at(patience, core.usable()).await.is_err() {
                    return Err(unavailable(core));
                }
            }
        }
    }
}

/// `None` when an attempt holds the key.
async fn claim(
    core: &Arc<Core>,
    key: KeyId,
    patience: Instant,
) -> Result<Option<Claim>, LedgerError> {
    loop {
        if core.closing.is_cancelled() {
            return Err(closed());
        }
        match core.table.claim(key) {
            Ok(claim) => return Ok(Some(claim)),
            Err(Taken::Held { .. }) => return Ok(None),
            // A request looks at the key, or another decision is on its way.
            Err(Taken::Opening { changed }) => {
                if timeout_at(patience, changed).await.is_err() {
                    return Err(unavailable(core));
                }
            }
        }
    }
}

/// A key that was held a moment ago: what it is now.
pub(super) fn held_entry(core: &Core, key: &KeyId) -> Result<Option<Entry>, LedgerError> {
    let found = core.store.find(key).map_err(|error| troubled(core, &error))?;
    Ok(read(core, found)?.map(|(stored, place)| entry(*key, stored, place.is_none())))
}

pub(super) fn entry(key: KeyId, stored: Stored, is_held: bool) -> Entry {
    match stored {
        Stored::Completed(record) => Entry::completed(key, &record),
        Stored::Intent { intent, .. } if is_held => Entry::in_progress(key, intent),
        Stored::Intent { intent, ended_at } => Entry::unknown(key, intent, ended_at),
    }
}

/// What is stored and not over.
fn read(core: &Core, found: Found) -> Result<Option<Value>, LedgerError> {
    let (value, place) = match found {
        Found::Nothing => return Ok(None),
        Found::Held(value) => (value, None),
        Found::Settled(place, _) if place.is_expired(core.horizon()) => return Ok(None),
        Found::Settled(place, value) => (value, Some(place)),
    };
    let stored = Stored::decode(&value)
        .map_err(|error| LedgerError::RecordUnreadable { reason: error.to_string() })?;
    Ok(Some((stored, place)))
}

/// Stores a decision. From its submission on it is carried out, whoever waits for it.
async fn decide(
    core: &Arc<Core>,
    change: Change,
    claim: Claim,
    decided: Ended,
) -> Result<(), DecideError> {
    let deadline = Instant::now() + core.timeout;
    let (operation, done) = Operation::end(change, claim, decided);
    core.submit(operation);
    match timeout_at(deadline, done).await {
        Ok(Ok(_decided)) => Ok(()),
        Ok(Err(_dropped)) => Err(closed().into()),
        Err(_elapsed) => Err(DecideError::NotStored { reason: core.trouble() }),
    }
}

pub(super) fn troubled(core: &Core, error: &super::store::StoreError) -> LedgerError {
    core.suspect(error);
    unavailable(core)
}

fn unavailable(core: &Core) -> LedgerError {
    LedgerError::Unavailable { reason: core.trouble(), source: None }
}
