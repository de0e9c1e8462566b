//! Time in the ledger, and what it ends.

use std::{sync::Arc, time::Duration};

use super::{
    disk::Disk,
    harness::{START, on_disk, settings},
};
use crate::{
    domain::{Cause, Clock, Timestamp},
    ledger::{
        Begun, Ledger,
        embedded::{Durability, Embedded, Settings, Sweep},
        suite::requests::{
            COMPLETED, UNKNOWN, answer, begin, completed, executing, owner, request, unknown,
        },
    },
};

const DAY: Duration = Duration::from_hours(24);

fn sweeping(clock: &Clock, disk: Option<&Disk>) -> Arc<Embedded> {
    let sweep =
        Sweep { interval: Duration::from_mins(1), batch: 2, pause: Duration::from_millis(50) };
    let settings = Settings { sweep, ..settings(clock, Durability::Memory) };
    Arc::new(match disk {
        Some(disk) => Embedded::in_file(&settings, disk.opener()).unwrap(),
        None => Embedded::open(&settings).unwrap(),
    })
}

async fn commit(ledger: &Arc<Embedded>, key: u8) {
    let ledger: Arc<dyn Ledger> = Arc::clone(ledger) as _;
    executing(&ledger, request(key)).await.commit(answer("receipt")).await.unwrap();
}

async fn look(ledger: &Arc<Embedded>, key: u8) -> Begun {
    ledger.begin(request(key)).await.unwrap()
}

fn step(ledger: &Embedded) {
    ledger.core.sweeper.step(&ledger.core).unwrap();
}

#[tokio::test]
async fn what_has_expired_is_swept_a_batch_at_a_time() {
    for disk in [None, Some(&Disk::default())] {
        let (clock, hands) = Clock::by_hand(START);
        let ledger = sweeping(&clock, disk);
        for key in 0..5 {
            commit(&ledger, key).await;
        }
        let hold = owner(look(&ledger, 5).await);
        hold.gate().open().unwrap();
        hold.abandon(Cause::TimedOut).await.unwrap();
        let full = ledger.stats();
        assert_eq!((full.completed, full.unknown, full.in_progress), (5, 1, 0));
        assert!(full.bytes > 0);

        hands.advance(COMPLETED);
        let mut left = Vec::new();
        for _ in 0..5 {
            step(&ledger);
            // Nothing more before the pause is over.
            step(&ledger);
            left.push(ledger.stats().completed);
            hands.advance(Duration::from_millis(50));
        }
        assert_eq!(left, [3, 1, 0, 0, 0]);
        assert_eq!(ledger.stats().unknown, 1);
        unknown(look(&ledger, 5).await);

        hands.advance(UNKNOWN);
        step(&ledger);
        assert_eq!(ledger.stats(), super::super::Stats::default());
        assert_eq!(owner(look(&ledger, 5).await).attempt(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_is_not_counted_as_in_progress() {
    let settings = settings(&Clock::following_tokio(START), Durability::Memory);
    let ledger = Arc::new(Embedded::with_latency(&settings, Duration::from_millis(2)));
    commit(&ledger, 1).await;

    let mut begin = tokio_test::task::spawn(look(&ledger, 1));
    tokio_test::assert_pending!(begin.poll());
    assert_eq!(ledger.stats().in_progress, 0);
    completed(begin.await);

    let hold = owner(look(&ledger, 2).await);
    assert_eq!(ledger.stats().in_progress, 1);
    hold.release().await.unwrap();
    assert_eq!(ledger.stats().in_progress, 0);
}

#[tokio::test]
async fn a_sweep_leaves_a_new_life_of_the_key_alone() {
    let disk = Disk::default();
    let (clock, hands) = Clock::by_hand(START);
    let ledger = sweeping(&clock, Some(&disk));
    commit(&ledger, 1).await;
    hands.advance(COMPLETED);
    // Replaces the first record.
    commit(&ledger, 1).await;
    hands.advance(Duration::from_mins(2));

    step(&ledger);

    completed(look(&ledger, 1).await);
    assert_eq!(ledger.stats().completed, 1);
}

#[tokio::test]
async fn a_step_of_the_wall_clock_changes_no_answer_and_stops_the_sweep() {
    let back = Timestamp::from_millis(START.as_millis() - 25 * 3_600_000);
    for wall in [START.after(Duration::from_hours(25)), back] {
        let (clock, hands) = Clock::by_hand(START);
        let ledger = sweeping(&clock, None);
        commit(&ledger, 1).await;

        hands.step_wall(wall);
        completed(look(&ledger, 1).await);
        hands.advance(COMPLETED);
        step(&ledger);

        // Expired by the ledger's time, but the clocks disagree: kept, and not replayed.
        assert_eq!(ledger.stats().completed, 1);
        hands.step_wall(START.after(COMPLETED + Duration::from_mins(1)));
        hands.advance(Duration::from_mins(1));
        step(&ledger);
        assert_eq!(ledger.stats().completed, 0);
    }
}

#[tokio::test]
async fn time_never_runs_backwards_over_a_restart() {
    let disk = Disk::default();
    let (clock, hands) = Clock::by_hand(START);
    let ledger = on_disk(&disk, &clock);
    commit(&ledger, 1).await;
    hands.advance(DAY.saturating_sub(Duration::from_secs(1)));
    commit(&ledger, 2).await;
    ledger.close().await;

    // The machine comes back with its clock a day behind.
    let (clock, hands) = Clock::by_hand(START);
    let ledger = on_disk(&disk, &clock);
    completed(look(&ledger, 1).await);
    hands.advance(Duration::from_secs(1));

    assert_eq!(owner(look(&ledger, 1).await).attempt(), 1);
}

#[tokio::test]
async fn the_age_of_an_unknown_key_counts_from_the_restart() {
    let disk = Disk::default();
    let (clock, hands) = Clock::by_hand(START);
    let ledger = on_disk(&disk, &clock);
    let hold = owner(look(&ledger, 1).await);
    hands.advance(3 * DAY);
    let left = disk.kill();
    let ledger = on_disk(&left, &clock);
    drop(hold);

    hands.advance(UNKNOWN.saturating_sub(Duration::from_millis(1)));
    assert_eq!(unknown(look(&ledger, 1).await).cause, Some(Cause::HolderGone));
    hands.advance(Duration::from_millis(1));
    owner(look(&ledger, 1).await);
}

#[tokio::test]
async fn many_keys_share_one_sync() {
    let disk = Disk::default();
    let ledger: Arc<dyn Ledger> = on_disk(&disk, &Clock::by_hand(START).0);
    let before = disk.syncs();
    let begins = (0..64).map(|key| begin(&ledger, request(key)));

    let begun = together(begins).await;

    assert!(begun.iter().all(|begun| matches!(begun, Begun::Owner(_))));
    assert!(disk.syncs() - before <= 16, "{} syncs for 64 keys", disk.syncs() - before);
}

/// All of them at once, in one task.
async fn together<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|f| tokio_test::task::spawn(f)).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    while outputs.iter().any(Option::is_none) {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.poll()
            {
                *output = Some(ready);
            }
        }
        tokio::task::yield_now().await;
    }
    outputs.into_iter().flatten().collect()
}
