//! The kind, help text and unit of every metric, as one table.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

use super::names;

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// What is told about a metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Description {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) help: &'static str,
}

/// Upper bounds of every histogram, in seconds: from what the gateway itself adds to the longest
/// call that is still common.
pub(super) const BUCKETS: [f64; 16] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0,
];

/// Upper bounds of what is told in milliseconds.
pub(super) const MILLISECONDS: [f64; 14] =
    [0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2500.0, 5000.0];

/// Every metric but those of the process, which [`process`](super::process) writes.
pub(super) const ALL: [Description; 30] = [
    counter(names::REQUESTS, "Requests, by how they ended."),
    histogram(names::REQUEST_DURATION, "Whole requests, by how they ended."),
    histogram(
        names::LEDGER_DURATION,
        "What the ledger adds to a request: taking the lock, waiting for it, storing the answer.",
    ),
    histogram(
        names::UPSTREAM_DURATION,
        "Calls of an upstream, by the class of the status it answered, or none.",
    ),
    gauge(names::KEYS_IN_FLIGHT, Unit::Count, "Keys that this process is executing."),
    gauge(names::WAITERS, Unit::Count, "Requests that wait for a key that another request holds."),
    gauge(names::KEYS_STORED, Unit::Count, "Records in the ledger."),
    gauge(names::STORED_BYTES, Unit::Bytes, "Bytes of the records in the ledger."),
    gauge(
        names::KEYS_UNKNOWN,
        Unit::Count,
        "Keys whose outcome nobody knows; above zero it wants an operator.",
    ),
    gauge(names::REPLAY_CACHE_BYTES, Unit::Bytes, "Bytes of stored answers held in memory."),
    gauge(
        names::BUFFERED_BYTES,
        Unit::Bytes,
        "Bytes of request and response bodies held in memory.",
    ),
    counter(names::CONFIG_RELOADS, "Reloads of the configuration."),
    gauge(names::CONNECTIONS, Unit::Count, "Open connections of clients."),
    counter(names::ACCEPT_ERRORS, "Failures to accept a connection."),
    counter(names::LOG_LINES_DROPPED, "Log lines that were dropped rather than block a request."),
    counter(names::SPANS_DROPPED, "Spans that no collector will see, by why."),
    counter(names::RECORDS_UNREADABLE, "Reads of records that this version cannot read."),
    gauge(
        names::SWEEP_STOPPED,
        Unit::Count,
        "1 while nothing is swept, since the wall clock and the servers' differ too much.",
    ),
    gauge(
        names::CERTIFICATE_EXPIRY,
        Unit::Seconds,
        "When the first certificate of a file for TLS ends, since the Unix epoch.",
    ),
    counter(names::ZK_SESSION_EXPIRED, "Sessions that were lost, by why."),
    counter(names::ZK_WATCH_NOTIFICATIONS, "Watch notifications received."),
    counter(
        names::ZK_LOCK_RELEASES,
        "Locks let go: no by who lets go, yes beside it by who was next in the queue.",
    ),
    gauge(names::ZK_EPHEMERAL_NODES, Unit::Count, "Live lock nodes of this gateway."),
    gauge(
        names::ZK_EPHEMERAL_NODES_PER_KEY,
        Unit::Count,
        "The most lock nodes that were seen under one key within the last 5 minutes.",
    ),
    gauge(names::ZK_QUORUM_SIZE, Unit::Count, "Servers of the ensemble that serve."),
    gauge(names::ZK_ENSEMBLE_SIZE, Unit::Count, "Servers of the ensemble."),
    Description {
        name: names::ZK_OPERATION_LATENCY,
        kind: Kind::Histogram,
        unit: Unit::Milliseconds,
        help: "Round trips of the ensemble.",
    },
    gauge(
        names::ZK_LEASE_REMAINING,
        Unit::Seconds,
        "For how long the locks of a session are surely ours.",
    ),
    gauge(names::ZK_SESSION_STATE, Unit::Count, "1 for the state that a session is in."),
    gauge(names::BUILD_INFO, Unit::Count, "Always 1; the labels tell which build runs."),
];

/// Registers the help texts with the recorder in effect.
pub(super) fn describe() {
    for Description { name, kind, unit, help } in ALL {
        match kind {
            Kind::Counter => describe_counter!(name, unit, help),
            Kind::Gauge => describe_gauge!(name, unit, help),
            Kind::Histogram => describe_histogram!(name, unit, help),
        }
    }
}

const fn counter(name: &'static str, help: &'static str) -> Description {
    Description { name, kind: Kind::Counter, unit: Unit::Count, help }
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Description {
    Description { name, kind: Kind::Gauge, unit, help }
}

const fn histogram(name: &'static str, help: &'static str) -> Description {
    Description { name, kind: Kind::Histogram, unit: Unit::Seconds, help }
}
