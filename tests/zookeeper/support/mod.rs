//! What the ensemble's tests add to those of one gateway: servers, their network, a foreign client.

mod deployment;
mod ensemble;
mod jute;
mod link;
mod peer;

pub(crate) use self::{
    deployment::{Deployment, Plan},
    ensemble::{Ensemble, Which},
    jute::Kind,
    link::{Fate, Link},
    peer::{Node, Peer},
};
