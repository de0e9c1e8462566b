//! What the ensemble's tests add to those of one gateway: servers, their network, a foreign client.

mod deployment;
mod ensemble;
mod jute;
mod link;
mod peer;
mod wall_clock;
mod wires;

pub(crate) use self::{
    deployment::Deployment,
    ensemble::{Ensemble, Which, word},
    jute::Kind,
    link::{Fate, Link},
    peer::{Node, Peer},
    wall_clock::WallClock,
    wires::Wires,
};

/// Shows a figure to whoever runs the tests with `--nocapture`.
#[expect(clippy::print_stdout, reason = "figures are this test run's second outcome")]
pub(crate) fn show(figure: &str) {
    println!("{figure}");
}

/// When this gateway told that its session is lost, which it does as soon as the lease is over.
pub(crate) async fn lapse(gateway: &crate::shared::Gateway) -> tokio::time::Instant {
    gateway.logged("session lost").await;
    tokio::time::Instant::now()
}

/// Ends a client's connection with a reset: a closed writing side could mean that only the request
/// is over.
pub(crate) fn hang_up(client: crate::shared::Client) {
    socket2::SockRef::from(&client.stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(client);
}
