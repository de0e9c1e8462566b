//! Every 30 seconds: the nodes that a session has are compared with the attempts that live.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{
    core::Core,
    fault::{Fault, Refusal},
    paths,
    session::Session,
};

const INTERVAL: Duration = Duration::from_secs(30);

pub(super) fn start(core: &Arc<Core>, runtime: &tokio::runtime::Handle) {
    let core = Arc::clone(core);
    drop(runtime.spawn(async move {
        loop {
            tokio::select! {
                () = sleep(INTERVAL) => {}
                () = core.closing.cancelled() => return,
            }
            for session in core.sessions.all() {
                if let Err(fault) = reconcile(&core, &session).await {
                    tracing::debug!(%fault, "nodes could not be compared");
                }
            }
        }
    }));
}

/// Deletes the nodes that no attempt knows, and tells the attempts whose node is gone.
pub(super) async fn reconcile(core: &Core, session: &Session) -> Result<(), Fault> {
    // Only attempts that lived before the list can be missed in it.
    let before = session.established();
    let nodes = session.client.ephemerals(core.layout.root()).await?;
    // After the reply: an attempt is in the table before its node is asked for.
    let live: HashSet<String> = session.live().into_iter().map(paths::prefix).collect();
    let keys = nodes.iter().filter(|path| !core.layout.is_of_gateways(path));
    let mut there = HashSet::new();
    for path in keys {
        let name = paths::name_of(path);
        let prefix = name.rfind("lock-").map_or(name, |at| &name[..at + "lock-".len()]);
        if live.contains(prefix) {
            there.insert(prefix);
            continue;
        }
        tracing::warn!(path, "stray lock node deleted");
        match session.client.delete(path).await {
            Ok(()) | Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => {}
            Err(fault) => return Err(fault),
        }
    }
    for attempt in before {
        if !there.contains(paths::prefix(attempt).as_str()) {
            session.vanished(attempt);
        }
    }
    Ok(())
}
