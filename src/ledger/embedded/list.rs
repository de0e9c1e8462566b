//! Pages of keys: those that are held first, then what is settled, that which expires last first.

use std::{ops::ControlFlow, str::FromStr};

use bytes::Bytes;

use super::{
    core::Core,
    operator::{entry, held_entry, troubled},
    store::{Kind, Place, Row},
};
use crate::{
    domain::{FencingToken, KeyId, Timestamp},
    ledger::{Entry, KeyState, LedgerError, ListError, Page, Query, codec::Stored},
};

/// Rows that are looked at for one page, and their bytes: a filter that matches little must not
/// keep a thread busy for long.
const MOST_ROWS: usize = 5_000;
const MOST_BYTES: usize = 16 << 20;

/// Where a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    Held(KeyId),
    Settled(Option<Place>),
}

pub(super) fn list(core: &Core, query: &Query) -> Result<Page, ListError> {
    let mut page = Page::default();
    let after = query.after.as_deref().map(Cursor::from_str).transpose()?;
    let wants = |state| query.state.is_none_or(|wanted| wanted == state);
    let mut before = None;
    match after {
        Some(Cursor::Settled(place)) => before = place,
        Some(Cursor::Held(_)) | None if wants(KeyState::InProgress) => {
            let after = match after {
                Some(Cursor::Held(key)) => Some(key),
                Some(Cursor::Settled(_)) | None => None,
            };
            if let Some(next) = held(core, query, after, &mut page)? {
                page.next = Some(next.to_string());
                return Ok(page);
            }
        }
        Some(Cursor::Held(_)) | None => {}
    }
    if wants(KeyState::Unknown) || wants(KeyState::Completed) {
        page.next = settled(core, query, before, &mut page)?.map(|next| next.to_string());
    }
    Ok(page)
}

/// Fills the page with what is held, by key id; gives where to go on when it is full.
fn held(
    core: &Core,
    query: &Query,
    after: Option<KeyId>,
    page: &mut Page,
) -> Result<Option<Cursor>, ListError> {
    let mut keys = core.table.held();
    keys.retain(|key| after.is_none_or(|after| *key > after));
    keys.sort_unstable();
    for key in keys {
        if page.entries.len() >= query.limit {
            let last = page.entries.last().map_or(key, |entry| entry.key);
            return Ok(Some(Cursor::Held(last)));
        }
        match held_entry(core, &key) {
            // What ended meanwhile is found where it went.
            Ok(entry) => {
                let is_meant = |entry: &Entry| {
                    entry.state == KeyState::InProgress && is_of_route(entry, query)
                };
                page.entries.extend(entry.filter(is_meant));
            }
            Err(LedgerError::RecordUnreadable { .. }) => page.unreadable.push(key),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Fills the page with what is settled; gives where to go on unless all was seen.
fn settled(
    core: &Core,
    query: &Query,
    before: Option<Place>,
    page: &mut Page,
) -> Result<Option<Cursor>, ListError> {
    let now = core.now();
    let (mut rows, mut bytes, mut last) = (0, 0, before);
    let mut is_over = false;
    let all = core.store.walk(before, &mut |row: Row<'_>| {
        if page.entries.len() >= query.limit || rows >= MOST_ROWS || bytes >= MOST_BYTES {
            return ControlFlow::Break(());
        }
        if row.place.is_expired(now) {
            // So has all that comes after it.
            is_over = true;
            return ControlFlow::Break(());
        }
        (rows, last) = (rows + 1, Some(row.place));
        let state = match row.kind {
            Kind::Completed => KeyState::Completed,
            Kind::Unknown => KeyState::Unknown,
        };
        if query.state.is_none_or(|wanted| wanted == state) {
            bytes += row.value.len();
            match Stored::decode(&Bytes::copy_from_slice(row.value)) {
                Ok(stored) => {
                    let entry = entry(row.key, stored, false);
                    page.entries.extend(Some(entry).filter(|entry| is_of_route(entry, query)));
                }
                Err(_unreadable) => page.unreadable.push(row.key),
            }
        }
        ControlFlow::Continue(())
    });
    let all = all.map_err(|error| troubled(core, &error))?;
    Ok((!all && !is_over).then_some(Cursor::Settled(last)))
}

fn is_of_route(entry: &Entry, query: &Query) -> bool {
    query.route.as_deref().is_none_or(|route| *entry.origin.route == *route)
}

// === impl Cursor ===

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Held(key) => write!(f, "h{key}"),
            Self::Settled(None) => f.write_str("s"),
            Self::Settled(Some(place)) => {
                write!(f, "s{}-{}", place.expires_at.as_millis(), place.token.get())
            }
        }
    }
}

impl FromStr for Cursor {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        if let Some(key) = text.strip_prefix('h') {
            return key.parse().map(Self::Held).map_err(|_| ListError::Cursor);
        }
        let place = text.strip_prefix('s').ok_or(ListError::Cursor)?;
        if place.is_empty() {
            return Ok(Self::Settled(None));
        }
        let (expires_at, token) = place.split_once('-').ok_or(ListError::Cursor)?;
        let number = |text: &str| text.parse().map_err(|_| ListError::Cursor);
        let expires_at = Timestamp::from_millis(number(expires_at)?);
        let token = FencingToken::new(number(token)?);
        Ok(Self::Settled(Some(Place { expires_at, token })))
    }
}
