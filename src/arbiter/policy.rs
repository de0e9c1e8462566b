//! What a route decided about waiting, retention and the meaning of its upstream's answers.

use std::{collections::HashMap, sync::Arc};

use http::StatusCode;

use crate::{domain::Retention, ledger::Takeover};

/// A route's decisions, made once from the configuration.
#[derive(Clone, Debug)]
pub struct Policy {
    pub takeover: Takeover,
    pub retention: Retention,
    pub responses: Arc<Responses>,
    /// Whether a call is left to finish when the session of its lock is lost, so that its answer
    /// is stored for the retry; else it is aborted. Not with takeovers.
    pub settles: bool,
}

/// What an upstream's answer means for its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// Final: kept and replayed.
    Store,
    /// The upstream says that it did nothing: passed on, and the key is free.
    Release,
    /// Nobody knows whether it ran: passed on, and the key is unknown.
    Unknown,
}

/// A route's table over the defaults. An exact status beats a class.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    statuses: HashMap<StatusCode, Disposition>,
    /// By the first digit of the status.
    classes: HashMap<u16, Disposition>,
}

// === impl Responses ===

impl Responses {
    #[must_use]
    pub fn status(mut self, status: StatusCode, disposition: Disposition) -> Self {
        self.statuses.insert(status, disposition);
        self
    }

    /// `class` is the first digit, 2 to 5.
    #[must_use]
    pub fn class(mut self, class: u16, disposition: Disposition) -> Self {
        self.classes.insert(class, disposition);
        self
    }

    /// What `status`, answered to attempt number `attempt`, means.
    pub fn disposition(&self, status: StatusCode, retry_after: bool, attempt: u32) -> Disposition {
        let class = status.as_u16() / 100;
        let stated = self.statuses.get(&status).or_else(|| self.classes.get(&class));
        stated.copied().unwrap_or_else(|| by_default(status, retry_after, attempt))
    }
}

fn by_default(status: StatusCode, retry_after: bool, attempt: u32) -> Disposition {
    match status.as_u16() {
        401 | 403 | 407 | 421 | 425 | 429 => Disposition::Release,
        // Whoever says when to come back has not started.
        503 if retry_after => Disposition::Release,
        // An upstream with idempotency of its own says that the first attempt still runs.
        409 | 423 if attempt >= 2 => Disposition::Unknown,
        // 408: many frameworks answer it when their own handler ran too long.
        408 | 502..=504 | 506..=599 => Disposition::Unknown,
        // 500, 501 and 505 too: the upstream's own handler failed, and says so.
        _ => Disposition::Store,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16) -> Disposition {
        by_default(StatusCode::from_u16(status).unwrap(), false, 1)
    }

    // R8, R12, R20, R69
    #[test]
    fn the_defaults_are_those_of_the_behaviour_table() {
        for status in [200, 201, 204, 302, 304, 400, 404, 409, 422, 423, 500, 501, 505] {
            assert_eq!(of(status), Disposition::Store, "{status}");
        }
        for status in [401, 403, 407, 421, 425, 429] {
            assert_eq!(of(status), Disposition::Release, "{status}");
        }
        for status in [408, 502, 503, 504, 506, 507, 511, 520, 599] {
            assert_eq!(of(status), Disposition::Unknown, "{status}");
        }
    }

    #[test]
    fn a_503_that_says_when_to_come_back_frees_the_key() {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        assert_eq!(by_default(status, true, 1), Disposition::Release);
    }

    #[test]
    fn a_conflict_on_a_later_attempt_says_nothing_about_the_first() {
        for status in [StatusCode::CONFLICT, StatusCode::LOCKED] {
            assert_eq!(by_default(status, false, 2), Disposition::Unknown);
        }
    }

    #[test]
    fn an_exact_status_beats_its_class_and_both_beat_the_defaults() {
        let table = Responses::default()
            .class(5, Disposition::Store)
            .status(StatusCode::BAD_GATEWAY, Disposition::Unknown);
        assert_eq!(table.disposition(StatusCode::GATEWAY_TIMEOUT, false, 1), Disposition::Store);
        assert_eq!(table.disposition(StatusCode::BAD_GATEWAY, false, 1), Disposition::Unknown);
        // A class of the route's own table beats the default for `Retry-After` too.
        assert_eq!(table.disposition(StatusCode::SERVICE_UNAVAILABLE, true, 1), Disposition::Store);
        assert_eq!(table.disposition(StatusCode::FORBIDDEN, false, 1), Disposition::Release);
    }
}
