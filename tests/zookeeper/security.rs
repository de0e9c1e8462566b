//! Who may read what is stored in the ensemble.

use crate::{
    shared::{Upstream, post},
    support::{Deployment, Peer},
};

const AUTH: &str = "auth: [ { scheme: digest, credentials: 'oncegate:of-alice' } ]";

#[tokio::test]
async fn what_is_stored_under_credentials_is_for_their_owners_only() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.zookeeper(AUTH).ledger("timeout: 1s");
    let (first, second) = (deployment.gateway().await, deployment.gateway().await);
    assert_eq!(first.ask(&post("k")).await.status, 201);
    assert!(second.ask(&post("k")).await.is_replay());

    let mut stranger = Peer::of(&deployment.ensemble);
    for path in [deployment.record("k"), deployment.path("k"), deployment.root.clone()] {
        assert_eq!(stranger.get(&path).await, Err("NoAuthError".into()), "{path}");
    }
    for wrong in ["", "auth: [ { scheme: digest, credentials: 'oncegate:of-bob' } ]"] {
        let (code, log) = deployment.plan().zookeeper(wrong).fail().await;
        assert_eq!(code, 1, "{log}");
        for word in [&deployment.root, "not authorized", "ledger.zookeeper.auth"] {
            assert!(log.contains(word), "{word}: {log}");
        }
        assert!(!log.contains("of-bob"), "{log}");
    }
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn credentials_are_rotated_by_presenting_both() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.zookeeper(AUTH);
    let old = deployment.gateway().await;
    assert_eq!(old.ask(&post("k")).await.status, 201);
    let both = "auth: [ { scheme: digest, credentials: 'oncegate:of-alice' }, \
                { scheme: digest, credentials: 'oncegate:next' } ]";
    let between = deployment.plan().zookeeper(both).start().await;
    assert!(between.ask(&post("k")).await.is_replay());
    assert_eq!(between.ask(&post("by-both")).await.status, 201);
    assert!(old.ask(&post("by-both")).await.is_replay());
    assert_eq!(upstream.count(), 2);
}
