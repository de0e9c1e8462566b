//! The operator's listener: probes, metrics and the API over the keys, on an address that is
//! never the public one.

mod api;
mod client;
mod directory;
mod exchange;
mod health;
mod listener;
mod problem;
mod readiness;
mod routes;

#[cfg(test)]
mod tests;

pub use self::{
    api::Api,
    client::{ApiClient, ApiError, TokenError},
    directory::{Directory, KeyName, NameError},
    exchange::AskError,
    health::{HealthError, health_check},
    listener::Admin,
    readiness::Readiness,
};
