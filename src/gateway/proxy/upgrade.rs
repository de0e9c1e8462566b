//! What follows a `101 Switching Protocols`: bytes, both ways, until either side closes.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    time::sleep,
};

use super::{
    endpoint::InFlight,
    wire::{Wire, WireState},
};

/// Joins the client's connection, once it is handed over, and the upstream's.
///
/// The task ends when either side closes or fails, or when nothing has moved for `silence` (at most
/// twice as long). `early` is what the upstream sent along with its answer.
pub(super) fn join(
    client: OnUpgrade,
    (upstream, early): (Wire, Bytes),
    silence: Duration,
    in_flight: InFlight,
) {
    tokio::spawn(async move {
        let Ok(client) = client.await else { return };
        let state = Arc::clone(upstream.state());
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let copying = async {
            client.write_all(&early).await?;
            copy_bidirectional(&mut client, &mut upstream).await
        };
        tokio::select! {
            // However it ended, both sides have been told as far as that was possible.
            _ = copying => {}
            () = silent(&state, silence) => {}
        }
        drop(in_flight);
    });
}

async fn silent(state: &WireState, silence: Duration) {
    let mut before = state.moved();
    loop {
        sleep(silence).await;
        match state.moved() {
            now if now == before => return,
            now => before = now,
        }
    }
}
