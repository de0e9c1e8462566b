//! What the process tests are made of: the real binary, a scripted upstream, a byte-exact client.

mod client;
mod collector;
mod config;
mod gateway;
mod load;
mod upstream;

use std::{future::Future, time::Duration};

pub(crate) use self::{
    client::{Answer, Client, Request, ask, get, post},
    collector::{Collector, attribute},
    config::Config,
    gateway::{Gateway, Home, run, run_with},
    load::{Known, Load},
    upstream::{Refusing, Script, Step, Upstream, answer, chunked},
};

/// No event of these tests takes as long; what does is a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outcome of `event`, which must come; a hang fails here and says for what it waited.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(PATIENCE, event).await;
    outcome.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}
