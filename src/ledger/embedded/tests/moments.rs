//! A second request, or a drop, at every moment of the first one's life.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::time::{sleep, timeout};

use super::harness::DelayedHarness;
use crate::{
    domain::Cause,
    ledger::{
        Begin, Begun, Ledger,
        suite::{
            Harness,
            requests::{answer, begin, executing, patient, request, takeover},
        },
    },
};

/// Longer than any life here: a look of 2 ms, twice 2 ms for the intent and for the end, and the
/// upstream's 3 ms.
const LIFE: u64 = 20;
const UPSTREAM: Duration = Duration::from_millis(3);

/// How often the upstream was asked, and how many calls of it were open at the same time.
#[derive(Debug, Default)]
struct Upstream {
    calls: AtomicUsize,
    open: AtomicUsize,
}

impl Upstream {
    async fn call(&self) {
        self.calls.fetch_add(1, SeqCst);
        assert_eq!(self.open.fetch_add(1, SeqCst), 0, "two holders at once");
        let _open = Open(self);
        sleep(UPSTREAM).await;
    }

    fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }
}

struct Open<'a>(&'a Upstream);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, SeqCst);
    }
}

async fn run(ledger: &Arc<dyn Ledger>, upstream: &Upstream, request: Begin) -> Option<Begun> {
    let begun = begin(ledger, request).await;
    let Begun::Owner(hold) = begun else { return Some(begun) };
    hold.gate().open().unwrap();
    upstream.call().await;
    hold.commit(answer("receipt")).await.unwrap();
    None
}

#[tokio::test(start_paused = true)]
async fn a_second_request_never_runs_whenever_it_comes() {
    for offset in 0..LIFE {
        let (harness, upstream) = (DelayedHarness::start().await, Upstream::default());
        let ledger = harness.ledger();
        let (first, second) = tokio::join!(run(&ledger, &upstream, patient(1)), async {
            sleep(Duration::from_millis(offset)).await;
            run(&ledger, &upstream, patient(1)).await
        });
        assert!(first.is_none());
        assert!(matches!(second, Some(Begun::Completed(_))), "{second:?} after {offset} ms");
        assert_eq!(upstream.calls(), 1, "second request {offset} ms after the first");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_dropped_at_any_moment_never_lets_a_second_one_run_after_it_started() {
    for offset in 0..LIFE {
        let (harness, upstream) = (DelayedHarness::start().await, Upstream::default());
        let ledger = harness.ledger();
        let first = run(&ledger, &upstream, request(1));
        let dropped = timeout(Duration::from_millis(offset), first).await.is_err();
        let started = upstream.calls() == 1;

        let second = begin(&ledger, patient(1)).await;

        match &second {
            Begun::Owner(hold) => {
                assert!(!started, "ran twice, dropped after {offset} ms");
                assert_eq!(hold.attempt(), 1);
            }
            Begun::Completed(_) => assert!(started),
            Begun::Unknown(intent) => {
                assert!(started && dropped, "not sent, yet unknown after {offset} ms");
                assert_eq!(intent.cause, Some(Cause::Stopped));
            }
            Begun::InProgress | Begun::FingerprintMismatch(_) => {
                panic!("{second:?} after {offset} ms")
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_requests_of_which_one_is_dropped_never_both_run() {
    for (offset, cut) in (0..LIFE).flat_map(|offset| (0..LIFE).map(move |cut| (offset, cut))) {
        let (harness, upstream) = (DelayedHarness::start().await, Upstream::default());
        let ledger = harness.ledger();
        let first = timeout(Duration::from_millis(cut), run(&ledger, &upstream, patient(1)));
        let (_, second) = tokio::join!(first, async {
            sleep(Duration::from_millis(offset)).await;
            run(&ledger, &upstream, patient(1)).await
        });
        assert_eq!(upstream.calls(), 1, "cut at {cut} ms, second at {offset} ms: {second:?}");
    }
}

/// P3: no attempt is started while an earlier one's call is open, and each attempt is granted once.
#[tokio::test(start_paused = true)]
async fn of_two_takeovers_at_any_distance_one_runs() {
    for offset in 0..LIFE {
        let (harness, upstream) = (DelayedHarness::start().await, Upstream::default());
        let ledger = harness.ledger();
        executing(&ledger, request(1)).await.abandon(Cause::TimedOut).await.unwrap();
        let patient = || Begin { wait_until: patient(1).wait_until, ..takeover(1, 2) };
        tokio::join!(run(&ledger, &upstream, patient()), async {
            sleep(Duration::from_millis(offset)).await;
            run(&ledger, &upstream, patient()).await
        });
        assert_eq!(upstream.calls(), 1, "second takeover {offset} ms after the first");
    }
}

#[tokio::test(start_paused = true)]
async fn a_takeover_dropped_at_any_moment_never_frees_the_key() {
    for offset in 0..LIFE {
        let (harness, upstream) = (DelayedHarness::start().await, Upstream::default());
        let ledger = harness.ledger();
        executing(&ledger, request(1)).await.abandon(Cause::TimedOut).await.unwrap();
        let second = run(&ledger, &upstream, takeover(1, 2));
        drop(timeout(Duration::from_millis(offset), second).await);

        let third = begin(&ledger, patient(1)).await;

        assert!(
            matches!(third, Begun::Unknown(_) | Begun::Completed(_)),
            "{third:?} after {offset} ms"
        );
    }
}
