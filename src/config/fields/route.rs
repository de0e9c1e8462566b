//! The part of the description that concerns routes.

use super::{DAY, GIB, HEADER, HEADER_NAME, HEADERS, HOUR, MIB, NAME, SECOND};
use crate::{
    config::{
        shape::{Field, Shape, Text},
        units::Measure,
    },
    domain::IdempotencyKey,
};

pub(super) const ROUTE: &[Field] = &[
    Field::mandatory("name", Shape::Text(NAME), "Stands in metrics, logs and records."),
    Field::mandatory("match", Shape::Section(MATCH), "All that is given must hold."),
    Field::mandatory("upstream", Shape::Text(NAME), "One of `upstreams`."),
    Field::optional(
        "idempotency",
        Shape::Section(IDEMPOTENCY),
        "Without it requests are proxied and streamed.",
    ),
];

const MATCH: &[Field] = &[
    Field::optional(
        "host",
        Shape::Text(Text {
            pattern: r"[^\s:/]+|\[[0-9A-Fa-f:.]+\]",
            form: "write a host name without a port, like `api.example.com`",
        }),
        "Without a port; case does not matter.",
    ),
    Field::mandatory(
        "path_prefix",
        Shape::Text(Text {
            pattern: r"/[^\s?#*{}]*",
            form: "write a path like `/v1/charges`, or `/` for all",
        }),
        "Matches this path and all below it, by whole segments; there are no wildcards.",
    ),
    Field::optional(
        "methods",
        Shape::Filled(&Shape::Text(Text {
            pattern: "[A-Z]+",
            form: "write a method in capitals, like `POST`",
        })),
        "Every method unless given; of a route with idempotency the keyed ones, else POST and PATCH.",
    ),
];

const IDEMPOTENCY: &[Field] = &[
    Field::default("header", "Idempotency-Key", HEADER, "The header that carries the key."),
    Field::default("required", "true", Shape::Flag, "Whether a request without a key is refused."),
    Field::mandatory(
        "scope",
        Shape::AnyOf(&[Shape::Filled(&IDENTITY), Shape::OneOf(&["none"])]),
        "Request headers that identify the caller, or `none` for a single tenant.",
    ),
    Field::default(
        "scope_missing",
        "reject",
        Shape::OneOf(&["reject", "anonymous"]),
        "A request that lacks a header of the scope: `reject` answers 400, `anonymous` puts all of them into one common scope.",
    ),
    Field::optional(
        "namespace",
        Shape::Text(NAME),
        "Keys of different namespaces are different keys. The route's name unless given.",
    ),
    Field::default("key", "{}", Shape::Section(KEY), "What is accepted as a key."),
    Field::default(
        "fingerprint",
        "{}",
        Shape::Section(FINGERPRINT),
        "What a retry must repeat, beside method, authority, path and query.",
    ),
    Field::default(
        "in_progress",
        "{ wait: 10s }",
        Shape::AnyOf(&[Shape::OneOf(&["reject"]), Shape::Section(IN_PROGRESS)]),
        "A retry whose first request still runs: `reject` answers 409 at once, `wait` when the time is over.",
    ),
    Field::default(
        "unknown_outcome",
        "reject",
        Shape::AnyOf(&[Shape::OneOf(&["reject", "retry"]), Shape::Section(UNKNOWN_OUTCOME)]),
        "A retry when nobody knows whether an earlier attempt ran: `reject` answers 409, `retry` sends it again, up to 3 attempts in all.",
    ),
    Field::default(
        "on_session_loss",
        "abort",
        Shape::OneOf(&["abort", "settle"]),
        "An upstream call whose ledger session is gone: `abort` ends it, `settle` lets it finish.",
    ),
    Field::default("retention", "{}", Shape::Section(RETENTION), "How long a key is remembered."),
    Field::default(
        "max_request_body",
        "1MiB",
        Shape::Number(Measure::Size, 1..=GIB),
        "A keyed request with a larger body is refused.",
    ),
    Field::default(
        "max_stored_body",
        "64KiB",
        Shape::Number(Measure::Size, 1..=16 * MIB),
        "Of a larger answer only the fact is kept.",
    ),
    Field::optional(
        "responses",
        Shape::Statuses(&["store", "release", "unknown"]),
        "By status or class, over the defaults: `store` keeps the answer for retries, `release` frees the key, `unknown` leaves its outcome unknown.",
    ),
    Field::default(
        "forward_key",
        "pass",
        Shape::OneOf(&["pass", "strip"]),
        "`pass` shows the key to the upstream, `strip` does not.",
    ),
    Field::default(
        "replay_header",
        "Idempotent-Replayed",
        HEADER,
        "Set to `true` on an answer that was given before.",
    ),
    Field::optional("drop_headers", HEADERS, "Left out of replays, beside the usual ones."),
];

const KEY: &[Field] = &[
    Field::default(
        "max_length",
        "255",
        Shape::Number(Measure::Count, 1..=IdempotencyKey::MAX_LENGTH as u64),
        "In bytes.",
    ),
    Field::default(
        "format",
        "any",
        Shape::OneOf(&["any", "uuid"]),
        "`any` takes every key, `uuid` only UUIDs.",
    ),
];

const FINGERPRINT: &[Field] = &[
    Field::default(
        "body",
        "raw",
        Shape::OneOf(&["raw", "json", "form", "multipart", "none"]),
        "How bodies are compared: `raw` by bytes, `json` by meaning, `form` and `multipart` by fields, `none` not at all.",
    ),
    Field::optional(
        "ignore",
        Shape::List(&Shape::Text(Text {
            pattern: "(/([^~]|~[01])*)+",
            form: "write a JSON pointer, like `/meta/sent_at`",
        })),
        "JSON pointers to members that may differ; only with `body: json`.",
    ),
    Field::optional("headers", HEADERS, "Request headers that a retry must repeat."),
];

const IN_PROGRESS: &[Field] = &[Field::mandatory(
    "wait",
    Shape::Number(Measure::Duration, 1..=HOUR),
    "For the answer of the request that runs.",
)];

const UNKNOWN_OUTCOME: &[Field] = &[Field::mandatory(
    "retry",
    Shape::Section(RETRY),
    "Send it again, with a higher fencing token.",
)];

const IDENTITY: Shape = Shape::Text(Text {
    form: "write the name of a header that identifies the caller, like `X-Api-Key`",
    pattern: HEADER_NAME,
});

/// Also what a plain `unknown_outcome: retry` means.
pub(in crate::config) const RETRY_ATTEMPTS: &str = "3";

const RETRY: &[Field] = &[Field::default(
    "attempts",
    RETRY_ATTEMPTS,
    Shape::Number(Measure::Count, 2..=100),
    "In a key's life, the first one included.",
)];

const RETENTION: &[Field] = &[
    Field::default(
        "completed",
        "24h",
        Shape::Number(Measure::Duration, SECOND..=3650 * DAY),
        "Of an answer, from the moment it is stored.",
    ),
    Field::default(
        "unknown",
        "7d",
        Shape::AnyOf(&[
            Shape::Number(Measure::Duration, SECOND..=3650 * DAY),
            Shape::OneOf(&["never"]),
        ]),
        "Of an unknown outcome; `never` keeps it until an operator decides.",
    ),
];
