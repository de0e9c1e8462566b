//! The session's timeout, the lease that follows, and what the servers' ticks say about both.

use std::time::Duration;

use tokio::task::JoinSet;

use super::{Examination, Terms};
use crate::ledger::{
    Grade,
    zookeeper::{
        servers::{value, word},
        tls::Tls,
    },
};

/// How a server counts time, from its answer to `conf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    tick: Duration,
    /// For so many ticks a server that lost its leader goes on serving.
    sync_limit: Option<u32>,
}

// === impl Examination ===

impl Examination<'_> {
    pub(super) async fn ticks(&mut self, terms: Terms) {
        let asked = self.settings.session_timeout;
        let (given, lease) = (terms.timeout, terms.shortest_lease());
        let told = format!("timeout {given:?}, lease at least {lease:?}");
        if given == asked {
            self.push(Grade::Good, "session", told);
        } else {
            let detail = format!(
                "{told}; the servers changed ledger.zookeeper.session_timeout from {asked:?}: set \
                 it to what they allow, 2 to 20 of their ticks unless configured otherwise"
            );
            self.push(Grade::Doubtful, "session", detail);
        }
        let mut asked = JoinSet::new();
        for session in &self.sessions {
            let server = session.server.clone();
            let tls = self.tls.as_deref().map(Tls::config);
            asked.spawn(async move { Ticks::read(&word(&server, "conf", tls).await.ok()?) });
        }
        let known: Vec<_> = asked.join_all().await.into_iter().flatten().collect();
        let (grade, detail) = judge(&known, terms);
        self.push(grade, "ticks", detail);
    }
}

fn judge(known: &[Ticks], terms: Terms) -> (Grade, String) {
    let Some(longest) = known.iter().map(|ticks| ticks.tick).max() else {
        let detail = format!(
            "not told by the servers; make sure that their tickTime is not above \
             ledger.zookeeper.tick_time ({:?}), or add conf to their 4lw.commands.whitelist",
            terms.tick
        );
        return (Grade::Doubtful, detail);
    };
    if longest > terms.tick {
        let detail = format!(
            "the servers' tickTime is {longest:?}, ledger.zookeeper.tick_time is {:?}: a lease \
             would end too late; set it to {longest:?}",
            terms.tick
        );
        return (Grade::Bad, detail);
    }
    if longest < terms.tick {
        let detail = format!(
            "the servers' tickTime is {longest:?}, ledger.zookeeper.tick_time is {:?}: leases end \
             earlier than they need to; set it to {longest:?}",
            terms.tick
        );
        return (Grade::Doubtful, detail);
    }
    let stale = known.iter().filter_map(|ticks| Some(ticks.tick * ticks.sync_limit?)).max();
    match stale {
        Some(stale) if stale > terms.timeout => (
            Grade::Doubtful,
            format!(
                "tickTime {longest:?}, but a server that lost its leader serves on for {stale:?} \
                 (syncLimit), longer than a session lives: sessions on it are lost, not moved; \
                 lower syncLimit or raise ledger.zookeeper.session_timeout"
            ),
        ),
        Some(stale) => (
            Grade::Good,
            format!(
                "tickTime {longest:?}; a server that lost its leader serves on for {stale:?}, \
                 within the session's timeout"
            ),
        ),
        None => (Grade::Good, format!("tickTime {longest:?}")),
    }
}

// === impl Ticks ===

impl Ticks {
    fn read(answer: &str) -> Option<Self> {
        let tick = value(answer, "tickTime=")?.parse().ok()?;
        // A server without an ensemble has none.
        let sync_limit = value(answer, "syncLimit=").and_then(|limit| limit.parse().ok());
        Some(Self { tick: Duration::from_millis(tick), sync_limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { timeout: Duration::from_secs(12), tick: Duration::from_secs(2) };

    fn graded(answers: &[&str]) -> Grade {
        let known: Vec<_> = answers.iter().filter_map(|answer| Ticks::read(answer)).collect();
        judge(&known, TERMS).0
    }

    #[test]
    fn a_tick_longer_than_configured_is_no_lease() {
        assert_eq!(graded(&["tickTime=2000\nsyncLimit=5\n"]), Grade::Good);
        assert_eq!(graded(&["tickTime=2000\n", "tickTime=2001\n"]), Grade::Bad);
    }

    #[test]
    fn a_server_that_serves_on_longer_than_a_session_lives_is_told() {
        assert_eq!(graded(&["tickTime=2000\nsyncLimit=6\n"]), Grade::Good);
        assert_eq!(graded(&["tickTime=2000\nsyncLimit=7\n"]), Grade::Doubtful);
    }

    #[test]
    fn ticks_that_no_server_tells_are_left_to_the_operator() {
        assert_eq!(graded(&["conf is not executed because it is not in the whitelist."]), {
            Grade::Doubtful
        });
    }
}
