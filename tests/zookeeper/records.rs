//! Records that cannot be read.

use crate::{
    shared::{Upstream, post},
    support::{Deployment, Peer},
};

#[tokio::test]
async fn a_record_that_cannot_be_read_refuses_its_key_and_is_not_touched() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let first = deployment.gateway().await;
    let mut peer = Peer::of(&deployment.ensemble);
    let mut damaged = Vec::new();
    for (key, damage) in [
        ("empty", (|_: &str| String::new()) as fn(&str) -> String),
        ("newer", |data| format!("ff{}", &data[2..])),
        ("cut", |data| data[..data.len() / 4 * 2].to_owned()),
        ("longer", |data| format!("{data}00")),
        ("text", |_| "68656c6c6f".into()),
    ] {
        assert_eq!(first.ask(&post(key)).await.status, 201);
        let record = deployment.record(key);
        let data = peer.get(&record).await.unwrap().data;
        peer.set(&record, &damage(&data)).await;
        damaged.push((key, record.clone(), peer.get(&record).await));
    }
    assert_eq!(first.ask(&post("sound")).await.status, 201);
    let other = deployment.gateway().await;

    for (key, record, stored) in &damaged {
        let answer = other.ask(&post(key)).await;
        assert_eq!((answer.status, answer.code()), (503, "record-unreadable".into()), "{key}");
        assert_eq!(answer.json()["outcome"], "unknown", "{key}");
        assert_eq!(&peer.get(record).await, stored, "{key}: nothing is overwritten");
    }
    assert!(other.ask(&post("sound")).await.is_replay());
    other.counted("record_unreadable", 5).await;
    assert_eq!(upstream.count(), 6);
    assert_eq!(deployment.locks(&mut peer).await, <[String; 0]>::default());
}

// R45, R47
#[tokio::test]
async fn an_answer_too_large_to_keep_leaves_a_tombstone_for_every_gateway() {
    let upstream = Upstream::always(crate::shared::answer("200 OK", "", "x".repeat(2000)));
    let deployment = Deployment::to(upstream.address).await.rules("max_stored_body: 1KiB");
    let (first, other) = (deployment.gateway().await, deployment.gateway().await);

    assert_eq!(first.ask(&post("k")).await.body.len(), 2000);
    for gateway in [&first, &other] {
        let retry = gateway.ask(&post("k")).await;
        assert_eq!((retry.status, retry.code()), (409, "not-replayable".into()));
    }
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn the_largest_answer_that_may_be_kept_is_replayed_by_every_gateway() {
    let body = "x".repeat(512 * 1024);
    let upstream = Upstream::always(crate::shared::answer("200 OK", "", &body));
    let deployment = Deployment::to(upstream.address).await.rules("max_stored_body: 512KiB");
    let (first, other) = (deployment.gateway().await, deployment.gateway().await);

    let answer = first.ask(&post("k")).await;
    let replay = other.ask(&post("k")).await;

    assert!(replay.is_replay());
    assert_eq!(replay.lasting(), answer.lasting());
    assert_eq!(upstream.count(), 1);
}
