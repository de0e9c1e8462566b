//! An ensemble that is gone for long.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    shared::{Client, Step, Upstream, answer, post, soon},
    support::{Deployment, Ensemble, Which, lapse, show},
};

/// How long there is no server.
const OUTAGE: Duration = Duration::from_mins(1);

/// A new key is refused when `ledger.timeout` is over, and no later than this.
const REFUSED: Duration = Duration::from_secs(3);

/// What a lapse may take to reach the client, on a machine that does a lot beside.
const PROMPTLY: Duration = Duration::from_secs(1);

// Z25, P6
#[tokio::test]
async fn for_a_minute_without_servers_nothing_is_sent_and_then_all_is_as_before() {
    let upstream = Upstream::scripted(|received| match received.key() {
        "running" => vec![Step::UntilAborted],
        _ => answer("201 Created", "", "receipt"),
    });
    let (ensemble, _wires) = Ensemble::own().await;
    let deployment = Deployment::on(ensemble, upstream.address).ledger("timeout: 1s");
    let (gateway, other) = (deployment.gateway().await, deployment.gateway().await);
    let mut running = Client::connect(gateway.address).await;
    running.send(&post("running")).await;
    upstream.received(1).await;
    deployment.ensemble.kill(Which::All).await;
    let killed = Instant::now();

    let answered = async {
        let answer = running.answer().await;
        (answer, Instant::now())
    };
    let (lapsed, (answer, answered)) = tokio::join!(lapse(&gateway), answered);
    assert_eq!((answer.status, answer.code()), (503, "session-lost".into()));
    assert_eq!(answer.json()["outcome"], "unknown");
    upstream.aborted(1).await;
    let late = answered.saturating_duration_since(lapsed);
    show(&format!("lease over {:?} after the servers, answered {late:?} later", lapsed - killed));
    assert!(late < PROMPTLY, "{late:?}");

    let mut refused = 0;
    while killed.elapsed() < OUTAGE {
        let asked = Instant::now();
        let answer = gateway.ask(&post(&format!("new-{refused}"))).await;
        assert_eq!((answer.status, answer.code()), (503, "ledger-unavailable".into()));
        assert_eq!(answer.json()["outcome"], "not_sent");
        assert!(asked.elapsed() < REFUSED, "{:?}", asked.elapsed());
        refused += 1;
    }
    assert_eq!(upstream.count(), 1);
    assert_eq!(gateway.ask_admin("/readyz").await.status, 503);
    deployment.ensemble.restart(Which::All).await;
    let restarted = Instant::now();
    for gateway in [&gateway, &other] {
        let ready = async { while gateway.ask_admin("/readyz").await.status != 200 {} };
        soon("a usable session", ready).await;
    }
    show(&format!(
        "{refused} refused; a usable session {:?} after the servers",
        restarted.elapsed()
    ));

    for gateway in [&gateway, &other] {
        let retry = gateway.ask(&post("running")).await;
        assert_eq!((retry.status, retry.code()), (409, "outcome-unknown".into()));
    }
    for number in 0..refused {
        let answer = other.ask(&post(&format!("new-{number}"))).await;
        assert_eq!((answer.status, answer.is_replay()), (201, false));
    }
    assert_eq!(upstream.count(), 1 + refused);
}
