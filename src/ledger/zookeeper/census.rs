//! Counts the servers of the ensemble, for the operator.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::core::Core;
use crate::telemetry::ensemble;

const INTERVAL: Duration = Duration::from_secs(5);

/// For one server's answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// An answer is a dozen lines.
const MOST: u64 = 4096;

pub(super) fn start(core: &Arc<Core>, runtime: &tokio::runtime::Handle) {
    let core = Arc::clone(core);
    drop(runtime.spawn(async move {
        loop {
            count(&core).await;
            core.forget();
            tokio::select! {
                () = sleep(INTERVAL) => {}
                () = core.closing.cancelled() => return,
            }
        }
    }));
}

async fn count(core: &Core) {
    let mut servers: BTreeSet<String> = core.settings.servers.iter().cloned().collect();
    if let Some(session) = core.sessions.any()
        && let Ok(config) = session.client.ensemble().await
    {
        let voters = voters(&config);
        // A single server has no configuration to tell.
        if !voters.is_empty() {
            servers = voters;
        }
    }
    let asked: Vec<_> =
        servers.iter().cloned().map(|server| tokio::spawn(serves(server))).collect();
    let mut serving = 0;
    for answer in asked {
        serving += u32::from(answer.await.unwrap_or(false));
    }
    ensemble::ensemble(serving, u32::try_from(servers.len()).unwrap_or(u32::MAX));
}

/// The client addresses of those that vote, from lines like
/// `server.1=10.0.0.1:2888:3888:participant;10.0.0.1:2181`.
fn voters(config: &str) -> BTreeSet<String> {
    let servers = config.lines().filter(|line| line.starts_with("server."));
    let voting = servers.filter(|line| !line.contains(":observer"));
    let addresses = voting.filter_map(|line| {
        let (peer, client) = line.rsplit_once(';').unwrap_or((line, ""));
        let host = peer.split_once('=')?.1.split(':').next()?;
        match client.rsplit_once(':') {
            Some(("0.0.0.0" | "[::]" | "[0:0:0:0:0:0:0:0]", port)) => {
                Some(format!("{host}:{port}"))
            }
            Some(_) => Some(client.to_owned()),
            None if client.is_empty() => None,
            None => Some(format!("{host}:{client}")),
        }
    });
    addresses.collect()
}

/// Whether it says that it is a part of the ensemble now.
async fn serves(server: String) -> bool {
    let answer = timeout(PATIENCE, async {
        let mut stream = TcpStream::connect(&server).await.ok()?;
        stream.write_all(b"srvr").await.ok()?;
        let mut answer = String::new();
        stream.take(MOST).read_to_string(&mut answer).await.ok()?;
        Some(answer)
    });
    answer.await.ok().flatten().is_some_and(|answer| answer.contains("Mode: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_that_vote_are_counted_at_the_address_of_clients() {
        let config = "server.1=10.0.0.1:2888:3888:participant;0.0.0.0:2181\n\
                      server.2=10.0.0.2:2888:3888:participant;127.0.0.1:2182\n\
                      server.3=10.0.0.3:2888:3888:observer;0.0.0.0:2181\nversion=0";
        let expected = ["10.0.0.1:2181", "127.0.0.1:2182"].map(str::to_owned);
        assert_eq!(voters(config), BTreeSet::from(expected));
    }
}
