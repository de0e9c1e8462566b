//! Examines what a gateway of this configuration would stand on: its ledger and its upstreams.

use std::io;

use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    build,
    signals::{Signals, told_to_stop},
};
use crate::{
    config::{Config, LedgerKind},
    gateway::proxy::{self, reach},
    ledger::{Finding, embedded, zookeeper},
    telemetry::Chain,
};

/// Told to stop, it ends what it has begun and gives what it has found so far.
///
/// # Errors
///
/// Signals cannot be listened for.
pub async fn doctor(config: &Config) -> io::Result<Vec<Finding>> {
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    let listening = tokio::spawn(async move {
        told_to_stop(&mut signals).await;
        told.cancel();
    });
    let (mut findings, upstreams) = tokio::join!(ledger(config, &stop), upstreams(config, &stop));
    findings.extend(upstreams);
    if stop.is_cancelled() {
        findings.push(Finding::bad("doctor", "was stopped before it had seen everything"));
    }
    listening.abort();
    Ok(findings)
}

async fn ledger(config: &Config, stop: &CancellationToken) -> Vec<Finding> {
    match &config.ledger.kind {
        LedgerKind::Embedded(storage) => {
            let settings = build::embedded(config, storage);
            let examined = tokio::task::spawn_blocking(move || embedded::examine(&settings));
            tokio::select! {
                examined = examined => examined.unwrap_or_default(),
                () = stop.cancelled() => Vec::new(),
            }
        }
        LedgerKind::ZooKeeper(ensemble) => {
            let settings = build::zookeeper(config, ensemble, build::gateway_id(config));
            zookeeper::examine(&settings, stop).await
        }
    }
}

/// A line for each endpoint, in the order of the file.
async fn upstreams(config: &Config, stop: &CancellationToken) -> Vec<Finding> {
    let mut asked = JoinSet::new();
    for upstream in &config.upstreams {
        let settings = build::upstream(upstream);
        for endpoint in &settings.endpoints {
            asked.spawn(look(asked.len(), settings.clone(), endpoint.clone()));
        }
    }
    let mut found = Vec::new();
    while let Some(Some(Ok(finding))) = stop.run_until_cancelled(asked.join_next()).await {
        found.push(finding);
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, finding)| finding).collect()
}

async fn look(
    place: usize,
    settings: proxy::Settings,
    endpoint: proxy::Endpoint,
) -> (usize, Finding) {
    let subject = format!("upstream {} {endpoint}", settings.name);
    let (started, limit) = (Instant::now(), settings.connect_timeout);
    let finding = match reach(&endpoint, limit).await {
        Ok(()) => {
            let after = started.elapsed().as_secs_f64() * 1000.0;
            Finding::good(subject, format!("accepts connections, after {after:.1} ms"))
        }
        Err(error) => {
            let detail = format!(
                "cannot be connected to within {limit:?} ({}); does it run, and can it be reached \
                 from here?",
                Chain(&error)
            );
            // The gateway goes on to the next one.
            let others = settings.endpoints.len() > 1;
            if others { Finding::doubtful(subject, detail) } else { Finding::bad(subject, detail) }
        }
    };
    (place, finding)
}
