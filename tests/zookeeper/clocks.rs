//! Wall clocks that are wrong, and what time does to what is stored.

use std::{sync::Arc, time::Duration};

use oncegate::domain::Clock;
use rustix::process::Signal;
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

use crate::{
    shared::{Answer, Gateway, Upstream, answer, ask, post},
    support::{Deployment, Ensemble, Peer, WallClock, show},
};

/// What the answer to a new key says about its end, which must be by the machine's clock.
async fn ask_new(gateway: &Gateway, key: &str, retention: Duration) -> Answer {
    let clock = Clock::system();
    let before = clock.wall();
    let answer = gateway.ask(&post(key)).await;
    assert_eq!((answer.status, answer.is_replay()), (201, false), "{answer:?}");
    let seconds = clock.wall().since(before).as_secs() + 1;
    let expires = answer.header("idempotency-expires").expect("an end").to_owned();
    let possible = |second| before.after(retention + Duration::from_secs(second)).to_string();
    assert!((0..=seconds).any(|second| possible(second) == expires), "{expires}");
    answer
}

/// Longer wrong than an answer is kept.
async fn decides_nothing(offset: &str) {
    const RETENTION: Duration = Duration::from_hours(24);
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.rules("retention: { completed: 24h }");
    let clock = WallClock::off_by(offset);
    // The first one is elected to sweep.
    let wrong = deployment.plan().under(&clock).start().await;
    let right = deployment.gateway().await;
    let by_right = ask_new(&right, "by-right", RETENTION).await;
    let by_wrong = ask_new(&wrong, "by-wrong", RETENTION).await;

    wrong.metric_is("oncegate_sweep_stopped", &[], 1.0).await;
    wrong.logged("wall clock left the servers' time, sweeping stopped").await;

    let mut peer = Peer::of(&deployment.ensemble);
    for key in ["by-right", "by-wrong"] {
        assert!(peer.get(&deployment.record(key)).await.is_ok(), "{offset}: {key} was swept");
    }
    for (gateway, key, answer) in [(&wrong, "by-right", &by_right), (&right, "by-wrong", &by_wrong)]
    {
        let replay = gateway.ask(&post(key)).await;
        assert!(replay.is_replay(), "{offset}: {key}");
        assert_eq!(replay.lasting(), answer.lasting(), "{offset}: {key}");
    }
    ask_new(&wrong, "later", RETENTION).await;
    assert_eq!(upstream.count(), 3);
}

// R32
#[tokio::test]
async fn a_wall_clock_25_hours_ahead_stops_the_sweeper_and_nothing_else() {
    decides_nothing("+25h").await;
}

// R32
#[tokio::test]
async fn a_wall_clock_25_hours_behind_stops_the_sweeper_and_nothing_else() {
    decides_nothing("-25h").await;
}

// Z21, Z34
#[tokio::test]
async fn all_that_expired_is_swept_at_a_bounded_rate_and_the_root_ends_empty() {
    const KEYS: usize = 300;
    // Keys in a second, at most.
    const RATE: f64 = 500.0;
    let clock = WallClock::off_by("+0h");
    let (ensemble, _wires) = Ensemble::own_with("", &clock.environment()).await;
    // Three of ten keys are left unknown.
    let upstream = Upstream::scripted(|received| {
        let is_unknown = received.key().ends_with(['0', '3', '6']);
        answer(if is_unknown { "502 Bad Gateway" } else { "201 Created" }, "", "answered")
    });
    let deployment = Deployment::on(ensemble, upstream.address)
        .rules("retention: { completed: 1h, unknown: 2h }");
    let writing = deployment.plan().under(&clock).start().await;
    let (address, at_once) = (writing.address, Arc::new(Semaphore::new(32)));
    let mut clients = JoinSet::new();
    for number in 0..KEYS {
        let at_once = Arc::clone(&at_once);
        clients.spawn(async move {
            let _permit = at_once.acquire().await.unwrap();
            ask(address, &post(&format!("k-{number}"))).await
        });
    }
    let answers = clients.join_all().await;
    let count = |status| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(201), count(502)), (KEYS * 7 / 10, KEYS * 3 / 10));
    let mut peer = Peer::of(&deployment.ensemble);
    let nodes = deployment.key_nodes(&mut peer).await;
    assert_eq!(nodes.len(), 2 * KEYS, "a key's node and its record");
    writing.signal(Signal::TERM);
    assert_eq!(writing.exit_code().await, 0);

    clock.step("+3h");
    let sweeping = deployment.plan().under(&clock).start().await;
    let mut records = nodes.keys().filter(|path| path.ends_with("/record"));
    peer.gone(records.next().unwrap()).await;
    let started = Instant::now();
    let swept = sweeping.logged("swept").await;

    let taken = started.elapsed();
    let rate = f64::from(u32::try_from(KEYS).unwrap()) / taken.as_secs_f64();
    show(&format!("{KEYS} keys swept in {taken:?}, {rate:.0} a second"));
    assert!(swept.to_string().contains(&format!("deleted: {KEYS}")), "{swept}");
    assert!(rate < RATE * 1.2, "{rate}");
    let left = deployment.key_nodes(&mut peer).await;
    assert!(left.is_empty(), "{left:?}");
    // What was is forgotten: the key is as new.
    assert_eq!(sweeping.ask(&post("k-1")).await.status, 201);
    assert_eq!(upstream.executions("k-1"), 2);
}
