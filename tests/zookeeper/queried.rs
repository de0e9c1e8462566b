//! What alerts, dashboard and runbook ask for is what gateways tell after some work.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{
    certificates::Authority,
    shared::{Client, Gateway, Upstream, post, soon},
    support::{Deployment, Peer},
    tls::tls,
};

const ASKING: [&str; 3] = [
    "charts/oncegate/rules/oncegate.yaml",
    "charts/oncegate/dashboards/oncegate.json",
    "docs/runbook.md",
];

/// The series that a file names; the servers' own counters stand beside their word.
fn queried(path: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let lines = text.lines().filter(|line| !line.contains("mntr"));
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_lowercase() && c != '_'));
    let is_series = |word: &&str| {
        ["oncegate_", "zk_", "process_"]
            .iter()
            .any(|start| word.strip_prefix(start).is_some_and(|rest| !rest.is_empty()))
    };
    words.filter(is_series).map(str::to_owned).collect()
}

/// Every series, and the name that people give to those of one histogram.
async fn told_by(gateway: &Gateway) -> BTreeSet<String> {
    let text = String::from_utf8(gateway.ask_admin("/metrics").await.body).unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let series = samples.filter_map(|line| line.split(['{', ' ']).next());
    series.flat_map(|name| [name, name.trim_end_matches("_bucket")]).map(str::to_owned).collect()
}

#[tokio::test]
async fn each_series_that_is_asked_for_is_told_after_some_work() {
    let upstream = Upstream::holding();
    let deployment = Deployment::to(upstream.address).await.rules("in_progress: { wait: 20s }");
    let (holder, waiter) = (deployment.gateway().await, deployment.gateway().await);
    let (mut first, mut second) =
        (Client::connect(holder.address).await, Client::connect(waiter.address).await);
    first.send(&post("k")).await;
    upstream.received(1).await;
    second.send(&post("k")).await;
    let mut peer = Peer::of(&deployment.ensemble);
    let both = async { while deployment.locks(&mut peer).await.len() < 2 {} };
    soon("the waiter's node", both).await;
    upstream.go();
    assert_eq!(first.answer().await.status, 201);
    assert!(second.answer().await.is_replay());
    // The sweeper tells what is stored after its first pass, and one of the two is elected.
    let swept = async {
        loop {
            let told = &told_by(&holder).await | &told_by(&waiter).await;
            if told.contains("oncegate_keys_stored") {
                return told;
            }
        }
    };
    let mut told = soon("a pass of the sweeper", swept).await;
    // Files for TLS have an end that is told, whether or not a server speaks it.
    let of_files = "oncegate_certificate_expiry_timestamp_seconds";
    assert!(!told.contains(of_files), "{told:?}");
    let ca = Authority::new();
    let line = tls(&ca.certificate(), None);
    let secured = deployment.ledger("timeout: 1s").zookeeper(&line).gateway().await;
    told.extend(told_by(&secured).await.into_iter().filter(|name| name == of_files));

    for path in ASKING {
        let queried = queried(path);
        assert!(queried.len() > 15, "{path}: {queried:?}");
        let missing: Vec<_> = queried.difference(&told).collect();
        assert!(missing.is_empty(), "{path}: {missing:?}");
    }
}
