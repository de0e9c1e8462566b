//! Takes a lock from a holder that cannot be at work any more.

use std::time::Duration;

use super::{fresh_session, look, unavailable};
use crate::{
    domain::KeyId,
    ledger::{
        DecideError, KeyState,
        zookeeper::{
            core::Core,
            fault::{Fault, Refusal},
            paths,
            time::MOST_DRIFT,
        },
    },
};

/// Deletes the node that all others of the key wait for, once it is so old that its attempt must
/// have ended and its session, too, if it was lost. One that lives all the same is told by the
/// transaction that would end it: the key is unknown, and nobody executes on the word of a delete.
pub(super) async fn force(
    core: &Core,
    key: KeyId,
    longest_call: Duration,
) -> Result<(), DecideError> {
    let session = fresh_session(core, &key).await?;
    let paths = core.layout.key(&key);
    let state = look(core, &session, key).await?.map(|entry| entry.state);
    if state == Some(KeyState::Completed) {
        return Err(DecideError::Completed);
    }
    let children = match session.client.children(&paths.node).await {
        Ok(children) => children,
        Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => Vec::new(),
        Err(fault) => return Err(unavailable(&fault).into()),
    };
    let not_held = if state.is_some() { DecideError::NotHeld } else { DecideError::Absent };
    let Some(first) = paths::first(&children) else { return Err(not_held) };
    let path = paths.child(first);
    let stat =
        async |path: &str| session.client.exists(path).await.map_err(|fault| unavailable(&fault));
    let written_at = stat(&paths.record).await?.map(|stat| core.time().at(stat.mtime));
    let Some(stat) = stat(&path).await? else { return Err(not_held) };
    // One that stood in the queue began its call when it wrote the intent, not when it came.
    let begun = core.time().at(stat.ctime);
    let begun = written_at.map_or(begun, |written_at| begun.max(written_at));
    let (age, least) = (core.time().now().since(begun), longest_call + session.terms.timeout);
    if age < least || core.time().drift() > MOST_DRIFT {
        return Err(DecideError::NotForced {
            reason: format!(
                "its call may have begun {age:?} ago, and until {least:?} (request_timeout and the \
                 session timeout), by clocks that agree, its holder may be at work"
            ),
        });
    }
    match session.client.delete(&path).await {
        Ok(()) | Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => {
            let owner = format_args!("{:#x}", stat.ephemeral_owner);
            tracing::warn!(znode_path = path, session_id = owner, "lock deleted by force");
            Ok(())
        }
        Err(Fault::InDoubt(fault)) => Err(DecideError::NotStored { reason: fault.to_string() }),
        Err(fault) => Err(unavailable(&fault).into()),
    }
}
