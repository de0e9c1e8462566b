//! A page of the file that cannot be read, however often it is tried.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use super::harness::{START, settings};
use crate::{
    domain::{Clock, FencingToken, KeyId, Timestamp},
    ledger::{
        Ledger, LedgerError,
        embedded::{
            Durability, Embedded,
            driver::Driver,
            store::{
                Change, Found, Mark, Place, Row, Store, StoreError, Totals, memory::MemoryStore,
            },
            time::LedgerTime,
        },
        suite::requests::{begin, owner, request},
    },
};

/// The engine panics at the page of key 1.
#[derive(Debug, Default)]
struct Spoiled {
    sound: MemoryStore,
    reopened: Arc<AtomicUsize>,
}

impl Store for Spoiled {
    fn find(&self, key: &KeyId) -> Result<Found, StoreError> {
        if key.as_bytes() == &[1; 32] { Err(StoreError::Panicked) } else { self.sound.find(key) }
    }

    fn apply(
        &self,
        changes: &mut dyn Iterator<Item = &Change>,
        mark: Mark,
    ) -> Result<(), StoreError> {
        self.sound.apply(changes, mark)
    }

    fn sweep(&self, until: Timestamp, mark: Mark, most: usize) -> Result<usize, StoreError> {
        self.sound.sweep(until, mark, most)
    }

    fn walk(
        &self,
        before: Option<Place>,
        visit: &mut dyn FnMut(Row<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        self.sound.walk(before, visit)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.reopened.fetch_add(1, SeqCst);
        self.sound.reopen()
    }

    fn close(&self) {
        self.sound.close();
    }

    fn totals(&self) -> Totals {
        self.sound.totals()
    }
}

#[tokio::test]
async fn a_page_that_cannot_be_read_blocks_its_own_key_and_costs_one_opening() {
    let (store, clock) = (Spoiled::default(), Clock::by_hand(START).0);
    let reopened = Arc::clone(&store.reopened);
    let time = LedgerTime::starting(clock.clone(), None);
    let settings = settings(&clock, Durability::Memory);
    let start = (time, FencingToken::new(1));
    let ledger = Embedded::new(&settings, Box::new(store), Driver::thread(), start);
    Driver::start(&ledger.core).unwrap();
    let ledger: Arc<dyn Ledger> = Arc::new(ledger);

    for _ in 0..20 {
        let error = ledger.begin(request(1)).await.unwrap_err();
        assert!(matches!(error, LedgerError::RecordUnreadable { .. }), "{error:?}");
        owner(begin(&ledger, request(2)).await).release().await.unwrap();
    }

    assert!(ledger.health().is_ok());
    assert_eq!(reopened.load(SeqCst), 1);
}
