//! Pages of the keys in the ensemble, shard by shard.

use super::{fresh_session, look, unavailable};
use crate::{
    domain::KeyId,
    ledger::{
        LedgerError, ListError, Page, Query,
        zookeeper::{
            core::Core,
            fault::{Fault, Refusal},
            paths::Layout,
        },
    },
};

/// Keys that one page looks at, at most: those that do not fit the query cost a read, too.
const MOST_LOOKS: usize = 2_000;

pub(super) async fn list(core: &Core, query: Query) -> Result<Page, ListError> {
    let after = match &query.after {
        Some(after) => Some(key_of(after).ok_or(ListError::Cursor)?),
        None => None,
    };
    let first = after.map_or(0, |key| usize::from(key.as_bytes()[0]));
    let any = after.unwrap_or(KeyId::from_bytes([0; 32]));
    let session = fresh_session(core, &any).await?;
    let mut page = Page::default();
    let mut looks = 0;
    for number in first..Layout::SHARDS {
        let names = match session.client.children(&core.layout.shard(number)).await {
            Ok(names) => names,
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => continue,
            Err(fault) => return Err(unavailable(&fault).into()),
        };
        let mut keys: Vec<KeyId> = names.iter().filter_map(|name| key_of(name)).collect();
        keys.sort_unstable();
        for key in keys.into_iter().filter(|key| after.is_none_or(|after| *key > after)) {
            looks += 1;
            match look(core, &session, key).await {
                Ok(Some(entry)) if is_wanted(&query, &entry) => page.entries.push(entry),
                Ok(_) => {}
                Err(LedgerError::RecordUnreadable { .. }) => page.unreadable.push(key),
                Err(error) => return Err(error.into()),
            }
            if page.entries.len() >= query.limit.max(1) || looks >= MOST_LOOKS {
                page.next = Some(key.to_string());
                return Ok(page);
            }
        }
    }
    Ok(page)
}

fn is_wanted(query: &Query, entry: &crate::ledger::Entry) -> bool {
    query.state.is_none_or(|state| state == entry.state)
        && query.route.as_deref().is_none_or(|route| route == &*entry.origin.route)
}

/// 64 hex digits.
fn key_of(name: &str) -> Option<KeyId> {
    let digits = name.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(KeyId::from_bytes(bytes))
}
