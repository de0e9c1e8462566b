//! What follows a `101 Switching Protocols`: bytes, both ways, until either side closes.

use bytes::Bytes;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, copy_bidirectional};

use super::{endpoint::InFlight, wire::Wire};

/// Joins the client's connection, once it is handed over, and the upstream's.
///
/// The task ends when either side closes or fails. `early` is what the upstream sent along with its
/// answer.
pub(super) fn join(client: OnUpgrade, upstream: Wire, early: Bytes, in_flight: InFlight) {
    tokio::spawn(async move {
        let Ok(client) = client.await else { return };
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let copied = async {
            client.write_all(&early).await?;
            copy_bidirectional(&mut client, &mut upstream).await
        };
        if let Err(error) = copied.await {
            tracing::debug!(%error, "upgraded connection broke");
        }
        drop(in_flight);
    });
}
