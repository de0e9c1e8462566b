//! The file, described once: the reader takes names, bounds and defaults from here, the schema
//! takes everything.

mod route;
#[cfg(test)]
mod tests;

pub(super) use self::route::RETRY_ATTEMPTS;
use super::{
    shape::{Field, Shape, Text},
    units::Measure,
};

pub(super) const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A duration that is waited for.
const TIMEOUT: Shape = Shape::Number(Measure::Duration, 1..=HOUR);

const COUNT: Shape = Shape::Number(Measure::Count, 1..=1_000_000);

const ADDRESS: Shape = Shape::Text(Text {
    pattern: r"\S+:[0-9]{1,5}",
    form: "write an IP address and a port, like `127.0.0.1:8080` or `[::]:8080`",
});

pub(super) const NAME: Text = Text {
    pattern: "[A-Za-z0-9][A-Za-z0-9._-]{0,127}",
    form: "write up to 128 letters, digits, dots, underscores and dashes, a letter or digit first",
};

const PATH: Shape = Shape::Text(Text { pattern: ".+", form: "write the path of a file" });

/// A token (RFC 9110 section 5.6.2).
const HEADER_NAME: &str = "[A-Za-z0-9!#$%&'*+.^_`|~-]+";

const HEADER: Shape = Shape::Text(Text {
    pattern: HEADER_NAME,
    form: "write the name of a header, like `X-Api-Key`",
});

const HEADERS: Shape = Shape::List(&HEADER);

/// The whole file.
pub(super) const FILE: &[Field] = &[
    Field::mandatory("listen", Shape::Section(LISTEN), "The public listener."),
    Field::mandatory(
        "admin",
        Shape::Section(ADMIN),
        "The listener for metrics, probes and the API over keys.",
    ),
    Field::default(
        "gateway_id",
        "${HOSTNAME:-gateway}",
        Shape::Text(NAME),
        "Names this gateway in records and logs; a random suffix is added at each start.",
    ),
    Field::mandatory("ledger", Shape::Section(LEDGER), "Where keys and answers are kept."),
    Field::default("limits", "{}", Shape::Section(LIMITS), "Bounds of the whole process."),
    Field::optional(
        "key_secret",
        Shape::Secret,
        "Key ids and fingerprints are HMACs under this secret instead of plain digests.",
    ),
    Field::mandatory("upstreams", Shape::Named(UPSTREAM), "The servers behind the gateway."),
    Field::mandatory(
        "routes",
        Shape::Filled(&Shape::Section(route::ROUTE)),
        "Tried in this order; the first match wins.",
    ),
    Field::default(
        "drain_delay",
        "0s",
        Shape::Number(Measure::Duration, 0..=HOUR),
        "How long requests are still accepted after SIGTERM, so that load balancers notice.",
    ),
    Field::default(
        "drain_timeout",
        "40s",
        TIMEOUT,
        "How long requests in flight may take to finish; above every request_timeout.",
    ),
    Field::default("log", "{}", Shape::Section(LOG), "Log lines on standard error."),
    Field::not_built("tls", "TLS"),
    Field::optional(
        "tracing",
        Shape::Section(TRACING),
        "Spans of requests, sent to a collector; without it none are made.",
    ),
];

const LISTEN: &[Field] = &[
    Field::mandatory("address", ADDRESS, "IP address and port."),
    Field::optional(
        "trusted_proxies",
        Shape::List(&Shape::Text(Text {
            pattern: "[0-9A-Fa-f.:]+(/[0-9]{1,3})?",
            form: "write a network or an address, like `10.0.0.0/8` or `::1`",
        })),
        "Peers whose X-Forwarded-* headers are believed.",
    ),
    Field::default("header_timeout", "10s", TIMEOUT, "Until the whole request head is there."),
    Field::default(
        "body_timeout",
        "30s",
        TIMEOUT,
        "Keyed requests: for the whole body. Others: between bytes.",
    ),
    Field::default("max_connections", "10000", COUNT, "Connections served at once."),
    Field::default(
        "max_header_size",
        "64KiB",
        // The HTTP implementation reads at least 8 KiB at once.
        Shape::Number(Measure::Size, 8 * KIB..=MIB),
        "Size of a request head.",
    ),
    Field::not_built("http2", "HTTP/2 towards clients"),
    Field::not_built("tls", "TLS towards clients"),
];

const ADMIN: &[Field] = &[
    Field::mandatory("address", ADDRESS, "IP address and port; never the public one."),
    Field::optional(
        "token",
        Shape::Secret,
        "What the API over keys asks for; required when the address is not loopback.",
    ),
];

const LEDGER: &[Field] = &[
    Field::mandatory(
        "kind",
        Shape::OneOf(&["embedded", "zookeeper"]),
        "`embedded` serves one gateway process, `zookeeper` any number of them.",
    ),
    Field::default(
        "timeout",
        "5s",
        TIMEOUT,
        "How long a keyed request waits for a usable ledger before it is refused.",
    ),
    Field::optional(
        "embedded",
        Shape::Section(EMBEDDED),
        "One process on one machine; survives restarts.",
    ),
    Field::optional(
        "zookeeper",
        Shape::Section(ZOOKEEPER),
        "Any number of gateways that share an ensemble.",
    ),
];

const ZOOKEEPER: &[Field] = &[
    Field::mandatory(
        "servers",
        Shape::Filled(&Shape::Text(Text {
            pattern: r"[^/?#@, ]+:[0-9]{1,5}",
            form: "write `host:port`",
        })),
        "All servers of the ensemble.",
    ),
    Field::default(
        "root",
        "/dedup",
        Shape::Text(Text { pattern: "(/[A-Za-z0-9._-]+)+", form: "write a path like `/dedup`" }),
        "The path below which everything is; one per deployment.",
    ),
    Field::default("session_timeout", "12s", TIMEOUT, "Asked for; the servers may give another."),
    Field::default(
        "tick_time",
        "2s",
        TIMEOUT,
        "The servers' tickTime; half of it shortens the lease.",
    ),
    Field::default(
        "sessions",
        "2",
        Shape::Number(Measure::Count, 1..=16),
        "Sessions that the keys are spread over.",
    ),
    Field::optional(
        "auth",
        Shape::List(&Shape::Section(ZOOKEEPER_AUTH)),
        "All are presented; with any, every node is closed to everyone else.",
    ),
    Field::optional(
        "tls",
        Shape::Section(ZOOKEEPER_TLS),
        "TLS to the servers, at their secureClientPort.",
    ),
];

const ZOOKEEPER_TLS: &[Field] = &[
    Field::mandatory(
        "ca",
        PATH,
        "PEM certificates that signed the servers', and revocation lists.",
    ),
    Field::optional(
        "certificate",
        PATH,
        "PEM certificate chain that proves who this gateway is; with `private_key`.",
    ),
    Field::optional("private_key", PATH, "PEM key of `certificate`, not encrypted."),
];

const ZOOKEEPER_AUTH: &[Field] = &[
    Field::mandatory("scheme", Shape::OneOf(&["digest"]), "Of the credentials."),
    Field::mandatory("credentials", Shape::Secret, "`user:password`, best through `${NAME}`."),
];

const EMBEDDED: &[Field] = &[
    Field::optional("path", PATH, "The file of the ledger; not with `durability: memory`."),
    Field::default(
        "durability",
        "fsync",
        Shape::OneOf(&["fsync", "memory"]),
        "`fsync` writes to disk before anybody is told; `memory` forgets every key at a restart.",
    ),
];

const LIMITS: &[Field] = &[
    Field::default("max_in_flight", "10000", COUNT, "Requests at once."),
    Field::default("max_in_flight_per_scope", "1000", COUNT, "Keyed requests of one caller."),
    Field::default("max_waiters_per_key", "100", COUNT, "Retries that wait for one key."),
    Field::default(
        "buffered_bodies",
        "512MiB",
        Shape::Number(Measure::Size, 64 * KIB..=1024 * GIB),
        "Request and response bytes held at once.",
    ),
    Field::default(
        "replay_cache",
        "64MiB",
        Shape::Number(Measure::Size, 64 * KIB..=64 * GIB),
        "Answers kept in memory.",
    ),
];

const UPSTREAM: &[Field] = &[
    Field::mandatory(
        "endpoints",
        Shape::Filled(&Shape::Text(Text {
            pattern: "[Hh][Tt][Tt][Pp]://[^/?#@ ]+/?",
            form: "write `http://host:port`, without a path",
        })),
        "The interchangeable servers; port 80 unless written. A name is looked up for each new connection.",
    ),
    Field::default(
        "balance",
        "least_requests",
        Shape::OneOf(&["least_requests", "round_robin"]),
        "`least_requests` takes the endpoint with the fewest in flight, `round_robin` each in turn.",
    ),
    Field::default("connect_timeout", "2s", TIMEOUT, "For one connection."),
    Field::default(
        "request_timeout",
        "30s",
        TIMEOUT,
        "Keyed requests: from connect to the last byte. Others: to the response head.",
    ),
    Field::default(
        "idle_timeout",
        "1s",
        TIMEOUT,
        "A keyed request never goes out on a connection that was idle for longer.",
    ),
    Field::default("stream_timeout", "60s", TIMEOUT, "Requests without a key: between bytes."),
    Field::not_built("health", "a health check of upstreams"),
    Field::not_built("health_check", "a health check of upstreams"),
    Field::not_built("health_checks", "a health check of upstreams"),
    Field::not_built("tls", "TLS to upstreams"),
    Field::not_built("protocol", "another protocol than HTTP/1.1 to upstreams"),
];

const TRACING: &[Field] = &[Field::mandatory(
    "otlp_endpoint",
    Shape::Text(Text {
        pattern: "[Hh][Tt][Tt][Pp]://[^/?#@ ]+/?",
        form: "write `http://host:port`, without a path",
    }),
    "A collector that takes OTLP over HTTP, usually at port 4318; port 80 unless written.",
)];

const LOG: &[Field] = &[
    Field::default(
        "format",
        "json",
        Shape::OneOf(&["json", "text"]),
        "`json` is for machines, `text` for people.",
    ),
    Field::default(
        "level",
        "info",
        Shape::OneOf(&["error", "warn", "info", "debug", "trace"]),
        "The least important lines that are written: `error` for the fewest, then `warn`, `info`, `debug`, `trace`.",
    ),
    Field::default(
        "keys",
        "plain",
        Shape::OneOf(&["plain", "hashed"]),
        "`plain` writes keys as they came, `hashed` their ids instead.",
    ),
];
