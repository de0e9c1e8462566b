//! What follows a `101 Switching Protocols`: bytes, both ways, until either side closes.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Request;
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
use crate::domain::Tether;

/// The client's side of a connection that is to be switched to another protocol.
pub(super) struct Switching {
    client: OnUpgrade,
    /// `None` where no listener counts the connection.
    tether: Option<Tether>,
}

/// Joins the client's connection, once it is handed over, and the upstream's.
///
/// The task ends when either side closes or fails, or when nothing has moved for `silence` (at most
/// twice as long), or when the listener cuts its tether. `early` is what the upstream sent along
/// with its answer.
pub(super) fn join(
    Switching { client, tether }: Switching,
    (upstream, early): (Wire, Bytes),
    silence: Duration,
    in_flight: InFlight,
) {
    tokio::spawn(async move {
        let cut = async {
            match &tether {
                Some(tether) => tether.cut().await,
                None => pending().await,
            }
        };
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
            () = cut => {}
        }
        drop((in_flight, tether));
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

// === impl Switching ===

impl Switching {
    pub(super) fn of<B>(request: &mut Request<B>) -> Self {
        let tether = request.extensions_mut().remove();
        Self { client: hyper::upgrade::on(request), tether }
    }
}
