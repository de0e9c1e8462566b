//! For how long a session's locks are surely ours, from nothing but acknowledged writes.

use std::time::Duration;

use crate::domain::BootInstant;

/// What the length of a lease depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// The session timeout that was negotiated.
    pub(super) timeout: Duration,
    /// The servers' tick time.
    pub(super) tick: Duration,
}

/// The acknowledged writes of one session, as far as they matter for its lease.
///
/// A write that a follower forwards does not touch the session at the leader; only the follower's
/// next reply to the leader's ping does, at most half a tick later. So a write counts only once a
/// *later* write, sent at least that much after its acknowledgement, was acknowledged too: that
/// one shows that the follower was still connected to the leader when the ping was due.
#[derive(Clone, Debug)]
pub(super) struct Beats {
    terms: Terms,
    /// When the newest write that counts was sent.
    counted: BootInstant,
    /// Those that may count later, oldest first.
    waiting: Vec<Beat>,
}

#[derive(Clone, Copy, Debug)]
struct Beat {
    sent: BootInstant,
    acknowledged: BootInstant,
}

/// Clocks drift, and a task may be late.
const MARGIN: Duration = Duration::from_secs(1);

/// Above the half tick, for the way of the ping and of its reply.
const PING: Duration = Duration::from_millis(500);

/// The shortest time between two heartbeats.
const SHORTEST: Duration = Duration::from_millis(1500);

/// Writes closer together than this are not worth a place of their own.
const APART: Duration = Duration::from_millis(100);

// === impl Terms ===

impl Terms {
    /// After a write's acknowledgement, until a later write proves it delivered.
    pub(super) fn proof(self) -> Duration {
        self.tick / 2 + PING
    }

    /// From an acknowledgement to the next heartbeat.
    pub(super) fn heartbeat(self) -> Duration {
        self.proof().max(SHORTEST)
    }

    /// How long a write that counts keeps the session, from when it was sent.
    pub(super) fn length(self) -> Duration {
        self.timeout.saturating_sub(self.tick / 2 + MARGIN)
    }

    /// What is left of a lease in steady state just before a heartbeat is acknowledged; zero if
    /// such a session could not keep one.
    pub(super) fn shortest_lease(self) -> Duration {
        self.length().saturating_sub(2 * self.heartbeat())
    }
}

// === impl Beats ===

impl Beats {
    /// The session did not exist at `asked`, so no server can end it earlier than its timeout
    /// after that.
    pub(super) fn new(terms: Terms, asked: BootInstant) -> Self {
        Self { terms, counted: asked, waiting: Vec::new() }
    }

    pub(super) fn acknowledged(&mut self, sent: BootInstant, acknowledged: BootInstant) {
        let proof = self.terms.proof();
        let is_proved = |beat: &Beat| beat.acknowledged.after(proof) <= sent;
        for beat in self.waiting.iter().filter(|beat| is_proved(beat)) {
            self.counted = self.counted.max(beat.sent);
        }
        let counted = self.counted;
        self.waiting.retain(|beat| beat.sent > counted);
        let newest = self.waiting.last().map(|beat| beat.sent);
        if newest.is_none_or(|newest| newest.after(APART) <= sent) {
            self.waiting.push(Beat { sent, acknowledged });
        }
    }

    pub(super) fn lease_until(&self) -> BootInstant {
        self.counted.after(self.terms.length())
    }
}
