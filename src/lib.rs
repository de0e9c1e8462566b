//! An HTTP reverse proxy that makes retries safe: each `Idempotency-Key` runs at most once.
//!
//! # Rooms, top to bottom
//!
//! A room may use the rooms below it, never one above and never a neighbour on its floor.
//! `tests/architecture.rs` holds the code to this table.
//!
//! | floor | room          | knows                                        | does not know             |
//! |-------|---------------|----------------------------------------------|---------------------------|
//! | 1     | [`cli`]       | arguments, exit codes                        | how anything works        |
//! | 2     | [`demo`]      | the sample payment API and its tour          | how anything works        |
//! | 3     | [`app`]       | what is started, reloaded, drained, stopped  | HTTP                      |
//! | 4     | [`server`]    | listeners, connections, what HTTP refuses    | which ledger is behind    |
//! | 4     | [`admin`]     | the operator's API, probes, metrics          | which ledger is behind    |
//! | 4     | [`config`]    | the file, its lines, its mistakes            | which ledger is behind    |
//! | 5     | [`gateway`]   | HTTP: layers, headers, bodies, problems      | locks                     |
//! | 6     | [`arbiter`]   | execute, join, wait, replay or refuse        | HTTP connections          |
//! | 7     | [`ledger`]    | who holds a key and what was answered        | routes, HTTP, policies    |
//! | 8     | [`telemetry`] | the name of every metric, span and log event | who counts                |
//! | 9     | [`domain`]    | the words the rest of the crate speaks       | everything else           |

pub mod cli;

pub mod demo;

pub mod app;

pub mod admin;
pub mod config;
pub mod server;

pub mod gateway;

pub mod arbiter;

pub mod ledger;

pub mod telemetry;

pub mod domain;

/// An error from below that nobody here needs to match on.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
