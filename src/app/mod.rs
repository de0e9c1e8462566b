//! What is started, reloaded, drained and stopped; the only room that names a concrete ledger.

mod build;
mod directory;
mod doctor;
mod housekeeping;
mod ledger;
mod reload;
mod run;
mod signals;
mod workers;

use std::net::SocketAddr;

pub use self::{
    directory::key_id,
    doctor::doctor,
    run::{Program, RunError, run},
};

/// Where a running gateway listens, with the ports that were picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    pub public: SocketAddr,
    pub admin: SocketAddr,
}
