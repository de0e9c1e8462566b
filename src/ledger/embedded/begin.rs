//! From a request for a key's lock to the hold, or to why not.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::{
    core::{Core, closed},
    operation::{Opening, Operation},
    store::{Change, Found, Origin, Place, StoreError},
    table::Taken,
};
use crate::{
    domain::{AttemptId, Cause, Intent},
    ledger::{
        Begin, Begun, Hold, KeyState, LedgerError, Takeover,
        codec::{Stored, encode_intent},
    },
    telemetry,
};

/// What a look at a key came to.
enum Look {
    Begun(Begun),
    /// Ask the store to write this intent.
    Free {
        intent: Intent,
        replaces: Option<Place>,
        earlier_cause: Option<Cause>,
    },
}

/// Cancel safe: an intent that is under way without its caller is released by the ledger.
pub(super) async fn begin(core: &Arc<Core>, request: Begin) -> Result<Begun, LedgerError> {
    tokio::select! {
        biased;
        told = look_until_told(core, &request) => told,
        () = core.closing.cancelled() => Err(closed()),
    }
}

async fn look_until_told(core: &Arc<Core>, request: &Begin) -> Result<Begun, LedgerError> {
    let mut patience = Instant::now() + core.timeout;
    let mut has_failed = false;
    loop {
        if core.closing.is_cancelled() {
            return Err(closed());
        }
        match core.table.claim(request.key) {
            Ok(claim) => {
                #[cfg(test)]
                core.driver.look_latency().await;
                if core.damaged.has(&request.key) {
                    return Err(unreadable(&"its pages could not be read a moment ago"));
                }
                match look(core, request) {
                    Ok(Look::Begun(begun)) => return Ok(begun),
                    Ok(Look::Free { intent, replaces, earlier_cause }) => {
                        let opening = Opening { claim, intent, earlier_cause };
                        return own(core, opening, replaces, patience).await.map(Begun::Owner);
                    }
                    Err(Trouble::Unreadable(error)) => return Err(error),
                    Err(Trouble::Store(error)) => {
                        match error.origin() {
                            Origin::Look if has_failed => {
                                core.damaged.add(request.key);
                                return Err(unreadable(&error));
                            }
                            Origin::Look => {
                                has_failed = true;
                                core.suspect(&error);
                            }
                            Origin::Elsewhere | Origin::Writer => core.suspect(&error),
                        }
                        drop(claim);
                        if timeout_at(patience, core.usable()).await.is_err() {
                            return Err(unavailable(core));
                        }
                    }
                }
            }
            Err(Taken::Opening { changed }) => {
                if timeout_at(patience, changed).await.is_err() {
                    return Err(unavailable(core));
                }
            }
            Err(Taken::Held { fingerprint, changed }) => {
                if !request.is_retry_of(&fingerprint) {
                    return Ok(Begun::FingerprintMismatch(KeyState::InProgress));
                }
                let Some(until) = request.wait_until else { return Ok(Begun::InProgress) };
                if timeout_at(until, changed).await.is_err() {
                    return Ok(Begun::InProgress);
                }
                // A holder's time is not the file's.
                patience = Instant::now() + core.timeout;
            }
        }
    }
}

enum Trouble {
    Unreadable(LedgerError),
    Store(StoreError),
}

/// Reads what is stored. Only for the one who has the claim: nobody else can change the key.
fn look(core: &Core, request: &Begin) -> Result<Look, Trouble> {
    let (stored, place) = match core.store.find(&request.key).map_err(Trouble::Store)? {
        Found::Nothing => return Ok(fresh(core, request, None)),
        // Its holder left without an end, or the next start would have settled it.
        Found::Held(value) => (Stored::decode(&value), None),
        Found::Settled(place, value) => (Stored::decode(&value), Some(place)),
    };
    let stored = stored.map_err(|error| Trouble::Unreadable(unreadable(&error)))?;
    if place.is_some_and(|place| place.is_expired(core.horizon())) {
        return Ok(fresh(core, request, place));
    }
    Ok(match stored {
        Stored::Completed(record) if request.is_retry_of(&record.fingerprint) => {
            Look::Begun(Begun::Completed(Arc::new(record)))
        }
        Stored::Completed(_) => Look::Begun(Begun::FingerprintMismatch(KeyState::Completed)),
        Stored::Intent { intent, .. } if !request.is_retry_of(&intent.fingerprint) => {
            Look::Begun(Begun::FingerprintMismatch(KeyState::Unknown))
        }
        Stored::Intent { intent, .. } => unknown(core, request, intent, place),
    })
}

fn fresh(core: &Core, request: &Begin, replaces: Option<Place>) -> Look {
    let intent = intent(core, request, 1, false);
    Look::Free { intent, replaces, earlier_cause: None }
}

fn unknown(core: &Core, request: &Begin, mut earlier: Intent, place: Option<Place>) -> Look {
    let cause = *earlier.cause.get_or_insert(Cause::HolderGone);
    let attempt = earlier.attempt.saturating_add(1);
    match request.takeover {
        Takeover::UpTo(most) if attempt <= most => Look::Free {
            // The key stays bound to the request that came first, by the recipe of that time.
            intent: Intent {
                fingerprint: earlier.fingerprint,
                ..intent(core, request, attempt, true)
            },
            replaces: place,
            earlier_cause: Some(cause),
        },
        Takeover::UpTo(_) | Takeover::Never => Look::Begun(Begun::Unknown(earlier)),
    }
}

fn intent(core: &Core, request: &Begin, attempt: u32, may_have_run: bool) -> Intent {
    Intent {
        attempt_id: AttemptId::random(),
        attempt,
        token: core.next_token(),
        may_have_run,
        fingerprint: request.fingerprint.clone(),
        retention: request.retention,
        origin: request.origin.clone(),
        begun_at: core.now(),
        cause: None,
    }
}

/// Makes the intent durable.
async fn own(
    core: &Arc<Core>,
    opening: Opening,
    replaces: Option<Place>,
    patience: Instant,
) -> Result<Hold, LedgerError> {
    let key = *opening.claim.key();
    let intent = encode_intent(&opening.intent, None);
    let change = Change::Begin { key, intent, replaces };
    let (operation, owner) = Operation::begin(change, opening);
    core.submit(operation);
    match timeout_at(patience, owner).await {
        Ok(Ok(hold)) => Ok(hold),
        Ok(Err(_dropped)) => Err(closed()),
        Err(_elapsed) => Err(unavailable(core)),
    }
}

fn unreadable(reason: &impl ToString) -> LedgerError {
    telemetry::record_unreadable();
    LedgerError::RecordUnreadable { reason: reason.to_string() }
}

fn unavailable(core: &Core) -> LedgerError {
    LedgerError::Unavailable { reason: core.trouble(), source: None }
}
