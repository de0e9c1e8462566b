//! The faults that the other tests plan do happen, seen by a client that is not the gateway's.

use crate::support::{Ensemble, Fate, Kind, Link, Peer, Which};

async fn root(peer: &mut Peer) -> String {
    let root = format!("/tooling-{}", uuid::Uuid::new_v4().simple());
    for node in ["lock", "record"] {
        peer.create(&format!("{root}/{node}")).await.unwrap();
    }
    root
}

#[tokio::test]
async fn a_lost_request_is_not_applied_and_a_lost_reply_is() {
    let ensemble = Ensemble::shared().await;
    let mut direct = Peer::of(&ensemble);
    for (fate, is_applied) in [(Fate::RequestLost, false), (Fate::ReplyLost, true)] {
        let root = root(&mut direct).await;
        let (lock, record) = (format!("{root}/lock"), format!("{root}/record"));
        let link = Link::to(&ensemble).await;
        let mut behind = Peer::at(link.servers());
        behind.create(&format!("{root}/other")).await.unwrap();
        link.next(Kind::Commit, fate);
        assert_eq!(behind.end(&lock, &record, "01").await, Err("ConnectionLoss".into()));
        link.happened().await;
        assert_eq!(direct.get(&lock).await.is_err(), is_applied, "{fate:?}");
        assert_eq!(direct.get(&record).await.unwrap().data == "01", is_applied, "{fate:?}");
    }
}

#[tokio::test]
async fn a_held_reply_comes_when_it_is_let_go() {
    let ensemble = Ensemble::shared().await;
    let mut direct = Peer::of(&ensemble);
    let root = root(&mut direct).await;
    let (lock, record) = (format!("{root}/lock"), format!("{root}/record"));
    let link = Link::to(&ensemble).await;
    let mut behind = Peer::at(link.servers());
    link.next(Kind::Commit, Fate::ReplyHeld);
    let ended = behind.end(&lock, &record, "01");
    let held = async {
        link.holds().await;
        direct.gone(&lock).await;
        link.let_go();
    };
    let (ended, ()) = tokio::join!(ended, held);
    assert_eq!(ended, Ok(()));
    assert_eq!(link.passed(Kind::Commit), 1);
}

#[tokio::test]
async fn a_stalled_link_passes_nothing_and_a_cut_one_ends() {
    let ensemble = Ensemble::shared().await;
    let mut direct = Peer::of(&ensemble);
    let root = root(&mut direct).await;
    let link = Link::to(&ensemble).await;
    let mut behind = Peer::at(link.servers());
    let record = format!("{root}/record");
    assert!(behind.get(&record).await.is_ok());
    let connections = link.connections();
    link.stall();
    let cut = async {
        direct.set(&record, "01").await;
        assert_eq!(link.connections(), connections);
        link.cut();
        link.flow();
        link.connected(connections + 1).await;
    };
    let (answer, ()) = tokio::join!(behind.get(&record), cut);
    // What waited for the link when it was cut is lost with it, or sent on the next connection.
    match answer {
        Ok(node) => assert_eq!(node.data, "01"),
        Err(error) => assert_eq!(error, "ConnectionLoss"),
    }
    assert_eq!(behind.get(&record).await.unwrap().data, "01");
}

#[tokio::test]
async fn killed_and_paused_servers_serve_again_after_the_test_that_broke_them() {
    {
        let ensemble = Ensemble::alone().await;
        let Which::Number(leader) = ensemble.leader().await else { panic!("one leads") };
        ensemble.pause(Which::Number(leader % 3 + 1)).await;
        ensemble.kill(Which::Number(leader)).await;
    }
    let ensemble = Ensemble::shared().await;
    assert!(ensemble.sum("zk_num_alive_connections").await >= 3);
}

#[tokio::test]
async fn a_follower_that_is_cut_off_still_reads_and_no_longer_writes() {
    let (ensemble, wires) = Ensemble::own().await;
    let Which::Number(leader) = ensemble.leader().await else { panic!("one leads") };
    let follower = leader % 3 + 1;
    let at = |number: usize| ensemble.servers()[number - 1];
    let (mut cut_off, mut other) = (Peer::at(&[at(follower)]), Peer::at(&[at(leader)]));
    let root = root(&mut cut_off).await;
    let record = format!("{root}/record");
    wires.stall(follower);
    other.set(&record, "01").await;
    assert_eq!(cut_off.look(&record).await.unwrap().data, "");
    assert_eq!(other.get(&record).await.unwrap().data, "01");
}
