//! The configuration file: its lines, its mistakes, and what it means.

mod model;

pub use self::model::{
    Admin, Balance, Config, Disposition, Durability, Endpoint, FingerprintRule, ForwardKey,
    Idempotency, InProgress, Ledger, LedgerKind, Limits, Listen, Log, LogFormat, LogKeys, Match,
    OnSessionLoss, Responses, Route, UnknownOutcome, Upstream,
};
