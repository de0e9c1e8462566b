//! The operator's listener: probes and metrics, on an address that is never the public one.

mod health;
mod listener;
mod readiness;
mod routes;

#[cfg(test)]
mod tests;

pub use self::{
    health::{HealthError, health_check},
    listener::Admin,
    readiness::Readiness,
};
