//! The API over an embedded ledger in memory, as scripts and foreign pages meet it.

mod access;
mod audit;
mod keys;
mod support;
