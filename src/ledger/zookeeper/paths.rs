//! Where things are in the ensemble, and what the names of lock nodes say.

use std::fmt;

use crate::domain::{AttemptId, KeyId};

/// The paths below one root.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    root: String,
}

/// The paths of one key.
#[derive(Clone, Debug)]
pub(super) struct KeyPaths {
    /// The container of the key's nodes.
    pub(super) node: String,
    pub(super) record: String,
    pub(super) shard: String,
}

/// The place of a node in the queue for a lock.
///
/// The servers count creations under one parent in 32 bits and go from `i32::MAX` to `i32::MIN`,
/// so two places are compared by their distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence(i32);

/// What stands before the sequence: in our names and Curator's, and in kazoo's.
const MARKS: [&str; 2] = ["lock-", "__lock__"];

// === impl Layout ===

impl Layout {
    pub(super) const SHARDS: usize = 256;
    const SWEEPER: &str = "sweeper-";

    pub(super) fn new(root: &str) -> Self {
        Self { root: root.trim_end_matches('/').to_owned() }
    }

    pub(super) fn root(&self) -> &str {
        &self.root
    }

    pub(super) fn shard(&self, number: usize) -> String {
        format!("{}/{number:02x}", self.root)
    }

    pub(super) fn gateways(&self) -> String {
        format!("{}/gateways", self.root)
    }

    pub(super) fn heartbeat(&self, gateway: &str, session: i64) -> String {
        format!("{}/gateways/{gateway}-{session:x}", self.root)
    }

    /// Each gateway's place in the election of the one that sweeps.
    pub(super) fn election(&self) -> String {
        format!("{}/gateways/{}", self.root, Self::SWEEPER)
    }

    /// Whether a path is one of a session's own nodes that belong to no key.
    pub(super) fn is_of_gateways(&self, path: &str) -> bool {
        path.strip_prefix(&self.root).is_some_and(|rest| rest.starts_with("/gateways/"))
    }

    pub(super) fn key(&self, key: &KeyId) -> KeyPaths {
        let shard = self.shard(usize::from(key.as_bytes()[0]));
        KeyPaths::at(format!("{shard}/{key}"), shard)
    }
}

// === impl KeyPaths ===

impl KeyPaths {
    pub(super) fn at(node: String, shard: String) -> Self {
        Self { record: format!("{node}/record"), node, shard }
    }

    /// Of a lock node whose sequence the server appends. Curator gives its protected locks the
    /// same names, so that the two contend with each other.
    pub(super) fn lock_prefix(&self, attempt: AttemptId) -> String {
        format!("{}/{}", self.node, prefix(attempt))
    }

    pub(super) fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.node)
    }
}

/// Of the name of an attempt's lock node.
pub(super) fn prefix(attempt: AttemptId) -> String {
    format!("_c_{attempt}-lock-")
}

/// The lock node of this attempt, among the children of a key's node.
pub(super) fn find_own(children: &[String], attempt: AttemptId) -> Option<&str> {
    let prefix = prefix(attempt);
    children.iter().map(String::as_str).find(|name| name.starts_with(&prefix))
}

/// The node whose end `own` has to wait for: the nearest before it in the queue.
pub(super) fn predecessor(children: &[String], own: Sequence) -> Option<&str> {
    let before = |name: &str| Sequence::of(name).and_then(|sequence| own.distance_to(sequence));
    let queue = children.iter().filter_map(|name| Some((before(name)?, name.as_str())));
    queue.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The first in the queue.
pub(super) fn first(children: &[String]) -> Option<&str> {
    let is_first = |name: &&str| {
        Sequence::of(name).is_some_and(|sequence| predecessor(children, sequence).is_none())
    };
    children.iter().map(String::as_str).find(is_first)
}

/// Whether any node among these stands in the queue for the lock.
pub(super) fn is_contended(children: &[String]) -> bool {
    children.iter().any(|name| Sequence::of(name).is_some())
}

/// How many nodes stand in the queue.
pub(super) fn contenders(children: &[String]) -> usize {
    children.iter().filter(|name| Sequence::of(name).is_some()).count()
}

/// The last part of a path.
pub(super) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

// === impl Sequence ===

impl Sequence {
    /// `None` for a node that is no lock.
    #[expect(clippy::cast_possible_truncation, reason = "places are compared modulo 2^32")]
    pub(super) fn of(name: &str) -> Option<Self> {
        MARKS.iter().find_map(|mark| {
            let (_, digits) = name.rsplit_once(mark)?;
            let number: i64 = digits.parse().ok()?;
            // Ten characters, of which the first may be a sign.
            (digits.len() >= 10).then_some(Self(number as i32))
        })
    }

    /// Of a node in the election of the sweeper.
    #[expect(clippy::cast_possible_truncation, reason = "places are compared modulo 2^32")]
    pub(super) fn of_candidate(name: &str) -> Option<Self> {
        let number: i64 = name.strip_prefix(Layout::SWEEPER)?.parse().ok()?;
        Some(Self(number as i32))
    }

    pub(super) fn is_behind(self, other: Self) -> bool {
        self.distance_to(other).is_some()
    }

    /// How far `other` is before this one; `None` if it is not.
    fn distance_to(self, other: Self) -> Option<u32> {
        let distance = self.0.wrapping_sub(other.0);
        u32::try_from(distance).ok().filter(|distance| *distance > 0)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
