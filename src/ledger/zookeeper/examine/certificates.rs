//! Whether certificates of `ledger.zookeeper.tls` end soon.

use std::time::Duration;

use super::Examination;
use crate::{
    domain::Timestamp,
    ledger::{Grade, zookeeper::tls::Tls},
};

/// As long as the alert has it.
const SOON: Duration = Duration::from_hours(14 * 24);

// === impl Examination ===

impl Examination<'_> {
    pub(super) fn certificates(&mut self, tls: &Tls) {
        let now = self.settings.clock.wall();
        for (file, expiry) in tls.expiries() {
            let (grade, detail) = judge(expiry, now);
            self.push(grade, format!("certificate {}", file.field()), detail);
        }
    }
}

/// An end that is over is doubtful, too: what it breaks is found at the servers.
fn judge(expiry: Option<Timestamp>, now: Timestamp) -> (Grade, String) {
    let Some(expiry) = expiry else {
        let detail = "its end cannot be read; look at it with `openssl x509 -enddate`".to_owned();
        return (Grade::Doubtful, detail);
    };
    if expiry >= now.after(SOON) {
        return (Grade::Good, format!("expires {expiry}"));
    }
    let word = if expiry > now { "expires" } else { "expired" };
    let detail = format!("{word} {expiry}; replace the file, it is read anew without a restart");
    (Grade::Doubtful, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_doubtful_once_it_ends_within_two_weeks() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let last = now.after(SOON);
        let just_before = Timestamp::from_millis(last.as_millis() - 1);
        let cases = [
            (Some(last), Grade::Good, "expires Fri, 29 Jan"),
            (Some(just_before), Grade::Doubtful, "expires Fri, 29 Jan"),
            (Some(now), Grade::Doubtful, "expired Fri, 15 Jan"),
            (None, Grade::Doubtful, "cannot be read"),
        ];
        for (expiry, grade, words) in cases {
            let (judged, detail) = judge(expiry, now);
            assert_eq!(judged, grade, "{detail}");
            assert!(detail.contains(words), "{detail}");
        }
    }
}
