//! A follower that is cut off from its leader goes on answering pings and reads: only a quorum
//! write tells a gateway that it is alone.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use crate::{
    shared::{Answer, Client, Gateway, Step, Upstream, post},
    support::{Deployment, Ensemble, Kind, Link, Peer, Which, Wires, lapse, show},
};

/// A gateway on a follower, which holds a key, and a foreign client on the leader.
struct Cut {
    deployment: Deployment,
    wires: Wires,
    link: Link,
    follower: usize,
    upstream: Upstream,
    holder: Gateway,
    client: Client,
    witness: Peer,
    lock: String,
}

/// What a lapse may take to reach the client, on a machine that does a lot beside. Seen here: a
/// few milliseconds.
const PROMPTLY: Duration = Duration::from_secs(1);

// === impl Cut ===

impl Cut {
    async fn ready(session_timeout: &'static str) -> Self {
        let upstream = Upstream::always(vec![Step::UntilAborted]);
        let (ensemble, wires) = Ensemble::own_with("maxSessionTimeout=24000", &[]).await;
        let Which::Number(leader) = ensemble.leader().await else { panic!("one leads") };
        let follower = leader % 3 + 1;
        let at = |number: usize| ensemble.servers()[number - 1];
        let link = Link::to_these(&[at(follower)]).await;
        let mut witness = Peer::at(&[at(leader)]);
        let deployment =
            Deployment::on(ensemble, upstream.address).session_timeout(session_timeout);
        let holder = deployment.gateway_via(&link).await;
        let mut client = Client::connect(holder.address).await;
        client.send(&post("k")).await;
        upstream.received(1).await;
        let [lock] = &deployment.locks(&mut witness).await[..] else { panic!("one lock") };
        let lock = lock.clone();
        Self { deployment, wires, link, follower, upstream, holder, client, witness, lock }
    }

    /// Cuts the follower off and checks that the upstream call is aborted, and the client
    /// answered, before the leader drops the lock.
    async fn ends_in_time(mut self) -> Answer {
        self.wires.stall(self.follower);
        let cut = Instant::now();
        let lapsed = lapse(&self.holder);
        let aborted = async {
            self.upstream.aborted(1).await;
            Instant::now()
        };
        let answered = async {
            let answer = self.client.answer().await;
            (answer, Instant::now())
        };
        let dropped = async {
            self.witness.gone(&self.lock).await;
            Instant::now()
        };
        let (lapsed, aborted, (answer, answered), dropped) =
            tokio::join!(lapsed, aborted, answered, dropped);

        let times = format!(
            "after the cut: lease over {:?}, call aborted {:?}, client answered {:?}, lock \
             dropped {:?}",
            lapsed - cut,
            aborted - cut,
            answered - cut,
            dropped - cut
        );
        show(&format!("{times}; margin {:?}", dropped - answered.max(aborted)));
        assert!(aborted < dropped && answered < dropped, "{times}");
        assert!(answered < lapsed + PROMPTLY, "{times}");
        let other = self.deployment.gateway().await;
        let retry = other.ask(&post("k")).await;
        assert_eq!((retry.status, retry.code()), (409, "outcome-unknown".into()));
        assert_eq!(self.upstream.count(), 1);
        answer
    }
}

// Z7, Z39
#[tokio::test]
async fn a_holder_on_a_follower_that_is_cut_off_ends_before_the_leader_drops_its_lock() {
    let answer = Cut::ready("6s").await.ends_in_time().await;
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
    assert_eq!(answer.json()["outcome"], "unknown");
}

// Z5, Z7
#[tokio::test]
async fn a_heartbeat_after_a_pause_that_the_leader_may_not_know_of_extends_no_lease() {
    let cut = Cut::ready("24s").await;
    cut.holder.signal(Signal::STOP);
    let heartbeats = cut.link.passed(Kind::Write);
    // The pause itself is what is tested: it is shorter than what ends the connection.
    tokio::time::sleep(Duration::from_secs(8)).await;
    cut.holder.signal(Signal::CONT);
    cut.link.passes(Kind::Write, heartbeats + 1).await;

    let answer = cut.ends_in_time().await;
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
}
