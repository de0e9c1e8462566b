//! What the process tests are made of: the real binary, a scripted upstream, a byte-exact client.

mod client;
mod config;
mod gateway;
mod upstream;

use std::{future::Future, time::Duration};

pub(crate) use self::{
    client::{Answer, Client, Request, ask, get, post},
    config::Config,
    gateway::{Gateway, Home, run},
    upstream::{Received, Refusing, Script, Step, Upstream, answer, chunked},
};

/// No event of these tests takes as long; what does is a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outcome of `event`, which must come; a hang fails here and says for what it waited.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, event).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}
