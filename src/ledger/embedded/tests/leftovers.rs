//! What must not happen, and what is made of it if it does.

use std::sync::Arc;

use tokio_test::task;

use super::{
    disk::Disk,
    harness::{START, on_disk, settings},
};
use crate::{
    domain::{Cause, Clock, FencingToken, KeyId},
    ledger::{
        Ledger,
        embedded::{
            Durability, Embedded,
            store::{Change, Found, Kind, Mark, Place},
        },
        suite::requests::{begin, owner, patient, request, unknown},
    },
};

const KEY: KeyId = KeyId::from_bytes([1; 32]);

fn apply(ledger: &Embedded, change: &Change) {
    ledger.core.store.apply(&mut std::iter::once(change), ledger.core.mark()).unwrap();
}

/// The transaction reached the disk, the engine says that it failed, and the caller is gone.
#[tokio::test]
async fn an_intent_that_was_written_after_all_is_released() {
    for patience in 0..12 {
        let disk = Disk::default();
        let ledger: Arc<dyn Ledger> = on_disk(&disk, &Clock::by_hand(START).0);
        disk.fail_after(patience, true);
        let mut first = task::spawn(ledger.begin(request(1)));
        while first.poll().is_pending() && !disk.has_failed() {
            tokio::task::yield_now().await;
        }
        drop(first);

        assert_eq!(owner(begin(&ledger, patient(1)).await).attempt(), 1, "after {patience}");
    }
}

#[tokio::test]
async fn an_intent_without_a_holder_is_unknown_and_never_free() {
    for disk in [None, Some(Disk::default())] {
        let clock = Clock::by_hand(START).0;
        let ledger = Arc::new(match &disk {
            Some(disk) => {
                Embedded::in_file(&settings(&clock, Durability::Memory), disk.opener()).unwrap()
            }
            None => Embedded::open(&settings(&clock, Durability::Memory)).unwrap(),
        });
        // A hold whose task is gone without even a drop.
        let hold = owner(ledger.begin(request(2)).await.unwrap());
        let Found::Held(intent) = ledger.core.store.find(&KeyId::from_bytes([2; 32])).unwrap()
        else {
            panic!("the intent is stored")
        };
        apply(&ledger, &Change::Begin { key: KEY, intent: intent.to_vec(), replaces: None });

        let ledger: Arc<dyn Ledger> = ledger;
        assert_eq!(unknown(begin(&ledger, request(1)).await).cause, Some(Cause::HolderGone));
        drop(hold);
    }
}

#[tokio::test]
async fn the_sweep_of_a_former_value_leaves_the_present_one() {
    for disk in [None, Some(Disk::default())] {
        let clock = Clock::by_hand(START).0;
        let ledger = match &disk {
            Some(disk) => {
                Embedded::in_file(&settings(&clock, Durability::Memory), disk.opener()).unwrap()
            }
            None => Embedded::open(&settings(&clock, Durability::Memory)).unwrap(),
        };
        let settle = |millis, value: &[u8]| {
            let expires_at = START.after(std::time::Duration::from_millis(millis));
            let place = Place { expires_at, token: FencingToken::new(millis) };
            apply(
                &ledger,
                &Change::Settle { key: KEY, place, kind: Kind::Completed, value: value.to_vec() },
            );
            place
        };
        let former = settle(1, b"former");
        let present = settle(2, b"present");

        let mark = Mark { now: former.expires_at, token: FencingToken::new(9) };
        assert_eq!(ledger.core.store.sweep(mark.now, mark, 10).unwrap(), 1);

        let Found::Settled(place, value) = ledger.core.store.find(&KEY).unwrap() else {
            panic!("the present value is kept")
        };
        assert_eq!((place, &value[..]), (present, &b"present"[..]));
    }
}
