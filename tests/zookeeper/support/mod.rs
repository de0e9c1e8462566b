//! What the ensemble's tests add to those of one gateway: servers, their network, a foreign client.

mod deployment;
mod ensemble;
mod jute;
mod link;
mod peer;
mod wires;

pub(crate) use self::{
    deployment::Deployment,
    ensemble::{Ensemble, Which, word},
    jute::Kind,
    link::{Fate, Link},
    peer::{Node, Peer},
    wires::Wires,
};

/// Ends a client's connection with a reset: a closed writing side could mean that only the request
/// is over.
pub(crate) fn hang_up(client: crate::shared::Client) {
    socket2::SockRef::from(&client.stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(client);
}
