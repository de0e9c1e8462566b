//! An HTTP reverse proxy that makes retries safe: each `Idempotency-Key` runs at most once.
//!
//! # Rooms, top to bottom
//!
//! A room may use the rooms below it, never one above and never a neighbour on its floor.
//! `tests/architecture.rs` holds the code to this table.
//!
//! | floor | room          | knows                                        | does not know             |
//! |-------|---------------|----------------------------------------------|---------------------------|
//! | 3     | [`config`]    | the file, its lines, its mistakes            | which ledger is behind    |
//! | 4     | [`gateway`]   | HTTP: layers, headers, bodies, problems      | locks                     |
//! | 5     | [`arbiter`]   | execute, join, wait, replay or refuse        | HTTP connections          |
//! | 6     | [`ledger`]    | who holds a key and what was answered        | routes, HTTP, policies    |
//! | 8     | [`domain`]    | the words the rest of the crate speaks       | everything else           |

pub mod config;

pub mod ledger;

pub mod domain;

/// An error from below that nobody here needs to match on.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
