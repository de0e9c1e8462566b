//! Starts that meet no ensemble, half of one, or something else.

use std::net::SocketAddr;

use crate::{
    shared::{Home, Refusing, Upstream, post, run, soon},
    support::Deployment,
};

/// What a gateway does when no session can be had from these servers.
async fn stays_closed(servers: &[SocketAddr]) {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.ledger("timeout: 1s");
    let gateway = deployment.plan().at(servers).start().await;

    let answer = gateway.ask(&post("k")).await;

    assert_eq!((answer.status, answer.code()), (503, "ledger-unavailable".into()));
    assert_eq!(answer.json()["outcome"], "not_sent");
    assert_eq!(upstream.count(), 0);
    assert_eq!(gateway.ask_admin("/readyz").await.status, 503);
    // The log names what could not be reached.
    let address = servers[0].to_string();
    gateway
        .logged_where("an event about the servers", |event| {
            event["level"] != "INFO" && event.to_string().contains(&address)
        })
        .await;
    // What needs no ledger goes on.
    assert_eq!(gateway.ask(&crate::shared::get("/plain")).await.status, 201);
}

// Z25
#[tokio::test]
async fn servers_that_nobody_reaches_are_named_and_nothing_is_forwarded() {
    let nobody = Refusing::new();
    stays_closed(&[nobody.address]).await;
}

#[tokio::test]
async fn servers_that_speak_something_else_are_named_and_nothing_is_forwarded() {
    let web = Upstream::start();
    stays_closed(&[web.address]).await;
}

#[tokio::test]
async fn servers_that_never_answer_are_named_and_nothing_is_forwarded() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    stays_closed(&[silent.local_addr().unwrap()]).await;
}

#[tokio::test]
async fn one_server_that_can_be_reached_is_enough() {
    let (upstream, nobody) = (Upstream::start(), Refusing::new());
    let deployment = Deployment::to(upstream.address).await;
    let servers = [nobody.address, deployment.ensemble.servers()[0]];
    let gateway = deployment.plan().at(&servers).start().await;
    let ready = async { while gateway.ask_admin("/readyz").await.status != 200 {} };
    soon("a usable session", ready).await;

    assert_eq!(gateway.ask(&post("k")).await.status, 201);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_session_timeout_that_the_servers_change_is_told() {
    let upstream = Upstream::start();
    // The servers allow 24 ticks of half a second.
    let deployment = Deployment::to(upstream.address).await.session_timeout("30s");
    let gateway = deployment.gateway().await;
    gateway
        .logged_where("an event about the timeout", |event| {
            event["level"] == "WARN" && event.to_string().contains("12s")
        })
        .await;
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
}

#[tokio::test]
async fn the_doctor_names_every_server_and_the_lease_that_follows() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let home = Home::new();
    std::fs::write(home.file(), deployment.plan().text()).unwrap();
    let report = run(&["doctor", "--config", home.file().to_str().unwrap()]).await;
    let text = String::from_utf8(report.stdout).unwrap();
    assert_eq!(report.status.code(), Some(0), "{text}");
    for server in deployment.ensemble.servers() {
        assert!(text.contains(&server.to_string()), "{server}: {text}");
    }
    for word in ["leader", "follower", "session", "lease", &deployment.root] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[tokio::test]
async fn the_doctor_fails_when_there_is_no_quorum() {
    let (upstream, nobody) = (Upstream::start(), Refusing::new());
    let deployment = Deployment::to(upstream.address).await;
    let home = Home::new();
    let plan = deployment.plan().at(&[nobody.address]);
    std::fs::write(home.file(), plan.text()).unwrap();
    let report = run(&["doctor", "--config", home.file().to_str().unwrap()]).await;
    let text = String::from_utf8(report.stdout).unwrap();
    assert_eq!(report.status.code(), Some(1), "{text}");
    assert!(text.contains(&nobody.address.to_string()), "{text}");
}
