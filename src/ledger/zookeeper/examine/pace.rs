//! How fast the servers answer, how large a request they take, and what time they have.

use std::time::Duration;

use tokio::time::Instant;
use zookeeper_client::CreateMode;

use super::{Client, Examination, Fault, Home, Silent};
use crate::{
    domain::Timestamp,
    ledger::{
        Grade,
        zookeeper::{client::MOST_BYTES, time::MOST_DRIFT},
    },
};

/// Requests of each kind.
const SAMPLES: usize = 100;

/// Every ensemble has it, and it is small.
const SMALL: &str = "/zookeeper";

/// A write that takes longer is felt by every keyed request, which waits for two.
const SLOW: Duration = Duration::from_millis(100);

/// Time is for people up to here.
const DRIFT: Duration = Duration::from_secs(10);

// === impl Examination ===

impl Examination<'_> {
    pub(super) async fn pace(&mut self, client: &Client, home: &Home) -> Result<(), Silent> {
        let (mut samples, mut drift) = (Vec::new(), Drift::default());
        let until = Instant::now() + self.settings.timeout;
        while samples.len() < SAMPLES && Instant::now() < until {
            let path = home.node(samples.len());
            let (before, started) = (self.settings.clock.wall(), Instant::now());
            let created = client.create(&path, b"", CreateMode::Ephemeral).await;
            let Ok((_, stat)) = self.answered("round trip create", created)? else { break };
            samples.push(started.elapsed());
            drift.saw(before, stat.ctime, self.settings.clock.wall());
            let deleted = client.delete(&path).await;
            drop(self.answered("round trip create", deleted)?);
        }
        self.round_trip("create", samples);
        let listed = self.sample(|| async { client.children(SMALL).await.map(drop) }).await;
        let listed = self.answered("round trip getChildren", listed)?;
        self.round_trip("getChildren", listed.unwrap_or_default());
        let looked = self.sample(|| async { client.exists(SMALL).await.map(drop) }).await;
        let looked = self.answered("round trip exists", looked)?;
        self.round_trip("exists", looked.unwrap_or_default());
        let (grade, detail) = drift.judged();
        self.push(grade, "clock", detail);
        Ok(())
    }

    /// Whether each server takes the largest request that a gateway sends.
    pub(super) async fn packets(&mut self) {
        // A look at a node whose name is that long changes nothing.
        let path = format!("/{}", "x".repeat(MOST_BYTES));
        let mut refusing = Vec::new();
        for session in &self.sessions {
            match session.client.exists(&path).await {
                Ok(_) | Err(Fault::Refused { .. }) => {}
                Err(Fault::NotSent(_) | Fault::InDoubt(_)) => {
                    refusing.push(session.server.as_str());
                }
            }
        }
        let (grade, detail) = if refusing.is_empty() {
            (Grade::Good, format!("a request of {MOST_BYTES} bytes is taken"))
        } else {
            let detail = format!(
                "{} ends the connection at a request of {MOST_BYTES} bytes; leave jute.maxbuffer \
                 at its default of 1 MiB on all servers, or keep every max_stored_body well below \
                 it",
                refusing.join(", ")
            );
            (Grade::Doubtful, detail)
        };
        self.push(grade, "packets", detail);
    }

    async fn sample<F>(&self, request: impl Fn() -> F) -> Result<Vec<Duration>, Fault>
    where
        F: Future<Output = Result<(), Fault>>,
    {
        let until = Instant::now() + self.settings.timeout;
        let mut samples = Vec::new();
        while samples.len() < SAMPLES && Instant::now() < until {
            let started = Instant::now();
            request().await?;
            samples.push(started.elapsed());
        }
        Ok(samples)
    }

    fn round_trip(&mut self, what: &str, mut samples: Vec<Duration>) {
        let subject = format!("round trip {what}");
        if samples.is_empty() {
            self.push(Grade::Doubtful, subject, "was refused, so it is not known");
            return;
        }
        samples.sort_unstable();
        let (p50, p99) = (percentile(&samples, 50), percentile(&samples, 99));
        let millis = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let told = format!(
            "p50 {:.1} ms, p99 {:.1} ms ({} requests)",
            millis(p50),
            millis(p99),
            samples.len()
        );
        if p50 < SLOW {
            self.push(Grade::Good, subject, told);
        } else {
            let detail = format!("{told}: slow; look at the servers' disks and at the way to them");
            self.push(Grade::Doubtful, subject, detail);
        }
    }
}

/// Of sorted samples, of which there is at least one.
fn percentile(samples: &[Duration], percent: usize) -> Duration {
    samples[(samples.len() * percent).div_ceil(100) - 1]
}

/// How far this machine's clock is from the leader's, which stamps every write.
#[derive(Clone, Copy, Debug, Default)]
struct Drift {
    /// The most that a write has proved.
    ahead: Duration,
    behind: Duration,
}

// === impl Drift ===

impl Drift {
    /// A write that was asked for at `before` and acknowledged at `after`.
    fn saw(&mut self, before: Timestamp, stamp: i64, after: Timestamp) {
        let stamp = Timestamp::from_millis(u64::try_from(stamp).unwrap_or_default());
        self.ahead = self.ahead.max(before.since(stamp));
        self.behind = self.behind.max(stamp.since(after));
    }

    fn judged(self) -> (Grade, String) {
        let Self { ahead, behind } = self;
        let (drift, side) = if ahead > behind { (ahead, "ahead of") } else { (behind, "behind") };
        let told = format!("this machine's is {drift:?} {side} the leader's");
        if drift.is_zero() {
            (Grade::Good, "this machine's is the leader's".to_owned())
        } else if drift <= DRIFT {
            (Grade::Good, told)
        } else if drift <= MOST_DRIFT {
            (Grade::Doubtful, format!("{told}; set both by NTP, or logs mislead"))
        } else {
            let detail = format!("{told}; nothing expires above {MOST_DRIFT:?}: set both by NTP");
            (Grade::Doubtful, detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&samples, 50), Duration::from_millis(50));
        assert_eq!(percentile(&samples, 99), Duration::from_millis(99));
        assert_eq!(percentile(&samples[..1], 99), Duration::from_millis(1));
    }

    #[test]
    fn a_clock_is_off_by_no_less_than_what_any_write_shows() {
        let at = Timestamp::from_millis;
        let mut drift = Drift::default();
        drift.saw(at(1_000), 1_002, at(1_005));
        assert_eq!(drift.judged().0, Grade::Good);
        assert!(drift.judged().1.contains("is the leader's"), "{}", drift.judged().1);
        drift.saw(at(1_000), 31_000, at(4_000));
        assert_eq!(drift.judged().0, Grade::Doubtful);
        assert!(drift.judged().1.contains("27s behind"), "{}", drift.judged().1);
        drift.saw(at(90_000_000), 1, at(90_000_001));
        assert!(drift.judged().1.contains("expires"), "{}", drift.judged().1);
    }
}
