//! Counts the servers of the ensemble, for the operator.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{core::Core, servers};
use crate::{
    ledger::{Server, SessionView},
    telemetry::ensemble,
};

const INTERVAL: Duration = Duration::from_secs(5);

pub(super) fn start(core: &Arc<Core>, runtime: &tokio::runtime::Handle) {
    let core = Arc::clone(core);
    drop(runtime.spawn(async move {
        loop {
            let servers = look(&core).await;
            let serving = servers.iter().filter(|server| server.serves()).count();
            ensemble::ensemble(number(serving), number(servers.len()));
            core.forget();
            tokio::select! {
                () = sleep(INTERVAL) => {}
                () = core.closing.cancelled() => return,
            }
        }
    }));
}

/// Those that vote, as far as their addresses are known; otherwise those of the configuration.
pub(super) async fn look(core: &Core) -> Vec<Server> {
    let mut addresses = core.settings.servers.clone();
    // What the servers tell of each other is their port without TLS.
    if core.sessions.tls.is_none()
        && let Some(session) = core.sessions.any()
        && let Ok(config) = session.client.ensemble().await
        && let Some(voters) = servers::voters(&config).into_iter().collect::<Option<Vec<_>>>()
        // A single server has no configuration to tell.
        && !voters.is_empty()
    {
        addresses = voters;
    }
    addresses.sort();
    addresses.dedup();
    servers::ask_all(addresses, core.sessions.tls.as_deref()).await
}

/// Those of this gateway.
pub(super) fn sessions(core: &Core) -> Vec<SessionView> {
    let view = |session: Arc<super::session::Session>| SessionView {
        slot: session.slot,
        id: session.id,
        timeout: session.terms.timeout,
        lease: session.lease_left(),
        is_connected: session.is_connected(),
        attempts: session.live_count(),
    };
    core.sessions.all().into_iter().map(view).collect()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
