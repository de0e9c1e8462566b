//! HTTP: what comes in, what goes upstream, and what is answered.

pub mod headers;
pub mod proxy;
