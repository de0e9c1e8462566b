//! Which servers can be reached, what they are, and whether they are one ensemble.

use super::{Client, Examination, OpenError, Silent};
use crate::ledger::{
    Grade, Server,
    zookeeper::servers::{ask_all, voters},
};

/// Container nodes came with it.
const OLDEST: (u32, u32, u32) = (3, 5, 3);

// === impl Examination ===

impl Examination<'_> {
    /// A line for each server, and a session from each that gives one.
    pub(super) async fn doors(&mut self) {
        let (settings, tls) = (self.settings, self.tls.clone());
        let asked = ask_all(settings.servers.iter().cloned(), tls.as_deref());
        let (wrong, asked) = tokio::join!(self.open(), asked);
        // The gateway uses the others.
        let worst = if self.sessions.is_empty() { Grade::Bad } else { Grade::Doubtful };
        for (server, wrong) in asked.into_iter().zip(wrong) {
            let (grade, detail) = match wrong {
                None => open_door(&server),
                Some(OpenError::Connect { .. } | OpenError::Overdue) => {
                    let silent = || {
                        "says that it serves, but gives no session; does its quorum answer?"
                            .to_owned()
                    };
                    (worst, server.trouble.clone().unwrap_or_else(silent))
                }
                Some(error) => (Grade::Bad, error.to_string()),
            };
            self.push(grade, format!("server {}", server.address), detail);
        }
    }

    /// How many servers there are, and how many may be lost.
    pub(super) async fn ensemble(&mut self, client: &Client) -> Result<(), Silent> {
        let config = client.ensemble().await;
        let Ok(config) = self.answered("ensemble", config)? else {
            // Someone closed `/zookeeper/config` to others.
            self.push(Grade::Doubtful, "ensemble", "may not be seen by these credentials");
            return Ok(());
        };
        let serving = self.sessions.len();
        let (grade, detail) = match voters(&config).len() {
            0 | 1 => (
                Grade::Doubtful,
                "1 server, no quorum: when it is down, keyed requests get 503".to_owned(),
            ),
            all => {
                let quorum = all / 2 + 1;
                let told = format!(
                    "{all} servers vote, a quorum is {quorum}; {serving} of {} configured serve",
                    self.settings.servers.len()
                );
                match serving.checked_sub(quorum) {
                    Some(0) if self.settings.servers.len() >= all => (
                        Grade::Doubtful,
                        format!("{told}: one more that fails stops every keyed request"),
                    ),
                    _ => (Grade::Good, told),
                }
            }
        };
        self.push(grade, "ensemble", detail);
        Ok(())
    }
}

/// Of a server that gave a session.
fn open_door(server: &Server) -> (Grade, String) {
    let (Some(mode), Some(version)) = (&server.mode, &server.version) else {
        let trouble = server.trouble.as_deref().unwrap_or("tells nothing about itself");
        return (Grade::Doubtful, format!("gives sessions, but {trouble}"));
    };
    let after = server.round_trip.unwrap_or_default().as_secs_f64() * 1000.0;
    let told = format!("{mode}, version {version}, answers in {after:.1} ms");
    match release(version) {
        Some(old) if old < OLDEST => (
            Grade::Bad,
            format!("{told}; it knows no container nodes: upgrade it to 3.8.4 or later"),
        ),
        Some((3, 8, 0)) => (
            Grade::Doubtful,
            format!(
                "{told}; 3.8.0 can leave a lone write unanswered for seconds (ZOOKEEPER-4537, and \
                 ZOOKEEPER-4026): upgrade it to 3.8.4 or later"
            ),
        ),
        Some(_) | None => (Grade::Good, told),
    }
}

fn release(version: &str) -> Option<(u32, u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    let mut next = || parts.next()?.ok();
    Some((next()?, next()?, next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graded(version: &str) -> Grade {
        let server = Server {
            address: "zk:2181".into(),
            mode: Some("leader".into()),
            version: Some(version.into()),
            round_trip: None,
            trouble: None,
        };
        open_door(&server).0
    }

    #[test]
    fn versions_with_known_faults_are_told() {
        assert_eq!(graded("3.4.14"), Grade::Bad);
        assert_eq!(graded("3.8.0"), Grade::Doubtful);
        for good in ["3.5.3", "3.8.4", "3.9.3", "3.10.0", "4.0"] {
            assert_eq!(graded(good), Grade::Good, "{good}");
        }
    }
}
