//! The power is cut at arbitrary moments of a busy ledger.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use tokio::task::JoinSet;

use super::{
    disk::Disk,
    harness::{START, on_disk},
};
use crate::{
    domain::{Cause, Clock},
    ledger::{
        Begun, Ended, Ledger,
        suite::requests::{answer, begin, owner, request},
    },
};

/// How far a client of this key has come. Ordered: a key only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begun,
    Owned,
    EndAsked,
    EndTold,
}

/// How the request of a key ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Commit,
    Release,
    Abandon,
}

type Log = Arc<Mutex<BTreeMap<u8, Step>>>;

impl Plan {
    fn of(key: u8) -> Self {
        match key % 4 {
            0 => Self::Release,
            1 => Self::Abandon,
            _ => Self::Commit,
        }
    }

    /// Whether a restart may say this about the key.
    fn allows(self, step: Step, begun: &Begun) -> bool {
        let answered = matches!(begun, Begun::Completed(r) if r.response == answer("receipt"));
        let free = matches!(begun, Begun::Owner(_));
        let unknown = matches!(begun, Begun::Unknown(_));
        match (step, self) {
            (Step::Owned, _) | (Step::EndAsked, Self::Abandon) => unknown,
            (Step::EndAsked, Self::Commit) => unknown || answered,
            (Step::Begun, _) | (Step::EndAsked, Self::Release) => unknown || free,
            (Step::EndTold, Self::Commit) => answered,
            (Step::EndTold, Self::Release) => free,
            (Step::EndTold, Self::Abandon) => {
                matches!(begun, Begun::Unknown(i) if i.cause == Some(Cause::TimedOut))
            }
        }
    }
}

async fn client(ledger: Arc<dyn Ledger>, key: u8, log: Log) {
    let step = |step| log.lock().unwrap().insert(key, step);
    step(Step::Begun);
    let hold = owner(begin(&ledger, request(key)).await);
    step(Step::Owned);
    hold.gate().open().unwrap();
    tokio::task::yield_now().await;
    step(Step::EndAsked);
    let ended = match Plan::of(key) {
        Plan::Commit => hold.commit(answer("receipt")).await,
        Plan::Release => hold.release().await,
        Plan::Abandon => hold.abandon(Cause::TimedOut).await,
    };
    assert!(matches!(ended, Ok(Ended::Completed(_) | Ended::Released | Ended::Unknown)));
    step(Step::EndTold);
}

/// Not a random number, but as good as one here, and the same in every run.
struct Coins(u64);

impl Coins {
    fn toss(&mut self) -> bool {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        self.0 >> 63 == 1
    }
}

// R1, R2, R73. P1 and P2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_power_cut_no_answer_is_lost_and_no_open_key_is_free() {
    let (mut cuts, mut coins) = (0, Coins(1));
    for round in (0..4).cycle() {
        if cuts > 100 {
            break;
        }
        let (clock, disk, log) = (Clock::by_hand(START).0, Disk::default(), Log::default());
        let ledger: Arc<dyn Ledger> = on_disk(&disk, &clock);
        let mut clients: JoinSet<()> =
            (0..60).map(|key| client(Arc::clone(&ledger), key, Arc::clone(&log))).collect();
        let mut done = false;
        while !done {
            done = tokio::time::timeout(std::time::Duration::ZERO, clients.join_next())
                .await
                .is_ok_and(|joined| joined.is_none());
            let before = log.lock().unwrap().clone();
            let left = match round {
                0 => disk.kill(),
                1 => disk.cut(|| false),
                _ => disk.cut(|| coins.toss()),
            };
            let after = log.lock().unwrap().clone();
            let restarted: Arc<dyn Ledger> = on_disk(&left, &clock);
            for (key, first) in before {
                let begun = begin(&restarted, request(key)).await;
                let steps = [Step::Begun, Step::Owned, Step::EndAsked, Step::EndTold];
                let mut reached = steps.into_iter().filter(|s| (first..=after[&key]).contains(s));
                assert!(
                    reached.any(|step| Plan::of(key).allows(step, &begun)),
                    "round {round}: key {key} was {first:?}, now {begun:?}"
                );
            }
            cuts += 1;
        }
    }
}
