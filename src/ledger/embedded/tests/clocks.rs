//! A start with a wall clock that is wrong.

use std::{sync::Arc, time::Duration};

use super::{
    disk::Disk,
    harness::{START, on_disk},
};
use crate::{
    domain::{Clock, Hands, Timestamp},
    ledger::{
        Ledger,
        embedded::Embedded,
        suite::requests::{COMPLETED, answer, begin, completed, executing, owner, request},
    },
};

const AHEAD: Duration = Duration::from_hours(25);
const MINUTE: Duration = Duration::from_mins(1);

fn start(disk: &Disk, wall: Timestamp) -> (Arc<Embedded>, Arc<dyn Ledger>, Hands) {
    let (clock, hands) = Clock::by_hand(wall);
    let ledger = on_disk(disk, &clock);
    (Arc::clone(&ledger), ledger, hands)
}

/// A file that holds an answer to request 1, from `START`.
async fn answered() -> Disk {
    let disk = Disk::default();
    let (_, ledger, _hands) = start(&disk, START);
    executing(&ledger, request(1)).await.commit(answer("receipt")).await.unwrap();
    ledger.close().await;
    disk
}

#[tokio::test]
async fn a_start_with_a_wall_clock_ahead_ends_no_retention_once_the_clock_is_right() {
    let disk = answered().await;
    let (embedded, ledger, hands) = start(&disk, START.after(AHEAD));
    // It works, and sweeps, before it is synchronised.
    executing(&ledger, request(2)).await.commit(answer("receipt")).await.unwrap();
    hands.advance(2 * MINUTE);
    embedded.core.sweeper.step(&embedded.core).unwrap();

    hands.step_wall(START.after(2 * MINUTE));
    for key in [1, 2] {
        completed(begin(&ledger, request(key)).await);
    }
    hands.advance(COMPLETED.saturating_sub(3 * MINUTE));
    completed(begin(&ledger, request(1)).await);
    hands.advance(MINUTE);
    owner(begin(&ledger, request(1)).await).release().await.unwrap();
}

#[tokio::test]
async fn a_wall_clock_that_was_ahead_once_is_not_remembered() {
    let disk = answered().await;
    let (_, ledger, hands) = start(&disk, START.after(AHEAD));
    executing(&ledger, request(2)).await.commit(answer("receipt")).await.unwrap();
    hands.advance(MINUTE);
    ledger.close().await;

    let (embedded, ledger, hands) = start(&disk, START.after(2 * MINUTE));
    assert_eq!(embedded.core.now(), START.after(2 * MINUTE));
    completed(begin(&ledger, request(1)).await);
    hands.advance(COMPLETED.saturating_sub(2 * MINUTE));
    owner(begin(&ledger, request(1)).await).release().await.unwrap();
}

/// A time that is ahead stands still until the wall clock has come to it.
#[tokio::test]
async fn a_file_that_was_made_with_a_wall_clock_ahead_heals() {
    let disk = Disk::default();
    let (_, ledger, _hands) = start(&disk, START.after(AHEAD));
    executing(&ledger, request(1)).await.commit(answer("receipt")).await.unwrap();
    ledger.close().await;

    for hours in [1, 20] {
        let (_, ledger, hands) = start(&disk, START);
        hands.advance(Duration::from_hours(hours));
        completed(begin(&ledger, request(1)).await);
        executing(&ledger, request(u8::try_from(hours).unwrap() + 1))
            .await
            .release()
            .await
            .unwrap();
        ledger.close().await;
    }

    let later = START.after(AHEAD + MINUTE);
    assert_eq!(start(&disk, later).0.core.now(), later);
}

/// From then on no step of the wall clock changes an answer.
#[tokio::test]
async fn a_wall_clock_that_has_stood_for_an_hour_is_trusted() {
    let disk = answered().await;
    let (_, ledger, hands) =
        start(&disk, START.after(COMPLETED.saturating_sub(Duration::from_hours(2))));
    hands.advance(Duration::from_hours(1));
    executing(&ledger, request(2)).await.release().await.unwrap();

    hands.step_wall(START);
    hands.advance(Duration::from_hours(1).saturating_sub(MINUTE));
    completed(begin(&ledger, request(1)).await);
    hands.advance(MINUTE);
    owner(begin(&ledger, request(1)).await).release().await.unwrap();
}
