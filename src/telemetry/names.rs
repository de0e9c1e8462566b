//! The name of every metric. No other file spells one; `docs/metrics.md` is compared with this.

/// Requests, by route and outcome.
pub const REQUESTS: &str = "oncegate_requests_total";
/// Whole requests, from the end of the request's head to the end of the answer's body.
pub const REQUEST_DURATION: &str = "oncegate_request_duration_seconds";
/// What the ledger adds to a request.
pub const LEDGER_DURATION: &str = "oncegate_ledger_duration_seconds";
/// Calls of an upstream.
pub const UPSTREAM_DURATION: &str = "oncegate_upstream_duration_seconds";
/// Keys that this process executes now.
pub const KEYS_IN_FLIGHT: &str = "oncegate_keys_in_flight";
/// Requests that wait for another's key now.
pub const WAITERS: &str = "oncegate_waiters";
/// Records in the ledger, by state.
pub const KEYS_STORED: &str = "oncegate_keys_stored";
/// Bytes of the records in the ledger.
pub const STORED_BYTES: &str = "oncegate_stored_bytes";
/// Keys whose outcome is unknown.
pub const KEYS_UNKNOWN: &str = "oncegate_keys_unknown";
/// Bytes of the stored answers held in memory.
pub const REPLAY_CACHE_BYTES: &str = "oncegate_replay_cache_bytes";
/// Bytes of the bodies held in memory.
pub const BUFFERED_BYTES: &str = "oncegate_buffered_bytes";
/// Reloads of the configuration, by result.
pub const CONFIG_RELOADS: &str = "oncegate_config_reloads_total";
/// Connections of clients that are open now.
pub const CONNECTIONS: &str = "oncegate_connections";
/// Failures to accept a connection.
pub const ACCEPT_ERRORS: &str = "oncegate_accept_errors_total";
/// Log lines that were dropped rather than block a request.
pub const LOG_LINES_DROPPED: &str = "oncegate_log_lines_dropped_total";
/// Spans that were dropped, by reason, rather than block a request.
pub const SPANS_DROPPED: &str = "oncegate_spans_dropped_total";
/// Records that this version cannot read; their keys are refused.
pub const RECORDS_UNREADABLE: &str = "oncegate_records_unreadable_total";
/// 1 while nothing is swept since the wall clock and the servers' differ too much.
pub const SWEEP_STOPPED: &str = "oncegate_sweep_stopped";
/// When the first certificate of a file of `ledger.zookeeper.tls` ends, since the Unix epoch.
pub const CERTIFICATE_EXPIRY: &str = "oncegate_certificate_expiry_timestamp_seconds";

/// Sessions that were lost, by reason. This and the other `zk_` names are the runbooks' own.
pub const ZK_SESSION_EXPIRED: &str = "zk_session_expired_total";
/// Watch notifications received.
pub const ZK_WATCH_NOTIFICATIONS: &str = "zk_watch_notifications_total";
/// Locks let go, with or without waiters.
pub const ZK_LOCK_RELEASES: &str = "zk_lock_releases_total";
/// Our live lock nodes.
pub const ZK_EPHEMERAL_NODES: &str = "zk_ephemeral_nodes_total";
/// The most lock nodes seen under one key.
pub const ZK_EPHEMERAL_NODES_PER_KEY: &str = "zk_ephemeral_nodes_per_key_max";
/// Servers of the ensemble that serve.
pub const ZK_QUORUM_SIZE: &str = "zk_quorum_size";
/// Servers of the ensemble.
pub const ZK_ENSEMBLE_SIZE: &str = "zk_ensemble_size";
/// Round trips of the ensemble, by operation.
pub const ZK_OPERATION_LATENCY: &str = "zk_operation_latency_ms";
/// For how long each session's locks are surely ours.
pub const ZK_LEASE_REMAINING: &str = "zk_lease_remaining_seconds";
/// The state of each session: 0 or 1.
pub const ZK_SESSION_STATE: &str = "zk_session_state";

/// Always 1; the labels are the news.
pub const BUILD_INFO: &str = "oncegate_build_info";

/// The names that every Prometheus client library uses for the process itself.
pub const PROCESS_CPU: &str = "process_cpu_seconds_total";
pub const PROCESS_START_TIME: &str = "process_start_time_seconds";
pub const PROCESS_RESIDENT_MEMORY: &str = "process_resident_memory_bytes";
pub const PROCESS_VIRTUAL_MEMORY: &str = "process_virtual_memory_bytes";
pub const PROCESS_OPEN_FDS: &str = "process_open_fds";
pub const PROCESS_MAX_FDS: &str = "process_max_fds";
pub const PROCESS_THREADS: &str = "process_threads";
