//! Starts that meet no ensemble, half of one, or something else.

use std::net::SocketAddr;

use crate::{
    shared::{Home, Refusing, Upstream, ask, get, post, soon},
    support::{Deployment, Fate, Kind, Link, Which},
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
            // And what to do.
            event["level"] != "INFO"
                && event.to_string().contains(&address)
                && event.to_string().contains('?')
        })
        .await;
    // What needs no ledger goes on.
    assert_eq!(gateway.ask(&get("/plain")).await.status, 201);
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
async fn servers_that_close_are_named_and_nothing_is_forwarded() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    stays_closed(&[address]).await;
    closing.abort();
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
    // The servers allow twenty ticks of half a second.
    let deployment = Deployment::to(upstream.address).await.session_timeout("30s");
    let gateway = deployment.gateway().await;
    gateway
        .logged_where("an event about the timeout", |event| {
            event["level"] == "WARN" && event.to_string().contains("10s")
        })
        .await;
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
}

#[tokio::test]
async fn a_session_timeout_that_leaves_no_lease_is_refused() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.session_timeout("30s");
    let text = deployment.plan().text().replace("tick_time: 500ms", "tick_time: 6s");
    let (code, log) = Home::new().fail_with(&text).await;
    assert_eq!(code, 1, "{log}");
    for word in ["10s", "session_timeout", "maxSessionTimeout"] {
        assert!(log.contains(word), "{word}: {log}");
    }
}

#[tokio::test]
async fn servers_too_old_for_the_protocol_are_refused() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let link = Link::to(&deployment.ensemble).await;
    link.next(Kind::Write, Fate::Unknown);
    let (code, log) = deployment.plan().via(&link).fail().await;
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("too old") && log.contains("3.8.4"), "{log}");
}

#[tokio::test]
async fn parents_of_the_root_that_are_missing_are_made() {
    let upstream = Upstream::start();
    let mut deployment = Deployment::to(upstream.address).await;
    deployment.root.push_str("/of/payments");
    let gateway = deployment.gateway().await;
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
    assert_eq!(upstream.count(), 1);
}

// Z25
#[tokio::test]
async fn an_ensemble_that_comes_later_is_used() {
    let upstream = Upstream::start();
    let deployment = Deployment::alone(upstream.address).await.ledger("timeout: 1s");
    deployment.ensemble.kill(Which::All).await;
    let gateway = deployment.gateway().await;
    let asked = tokio::time::Instant::now();
    let answer = gateway.ask(&post("k")).await;
    assert_eq!((answer.status, answer.code()), (503, "ledger-unavailable".into()));
    assert_eq!(answer.json()["outcome"], "not_sent");
    assert!(asked.elapsed().as_millis() < 2_500, "{:?}", asked.elapsed());
    assert_eq!(gateway.ask_admin("/readyz").await.status, 503);
    assert_eq!(gateway.ask(&get("/plain")).await.status, 201);
    assert_eq!(upstream.executions("k"), 0);

    deployment.ensemble.heal().await;
    let ready = async { while gateway.ask_admin("/readyz").await.status != 200 {} };
    soon("a usable session", ready).await;
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
    assert_eq!(upstream.executions("k"), 1);
}

#[tokio::test]
async fn the_api_shows_servers_and_sessions() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.sessions(2);
    let gateway = deployment.gateway().await;
    let request = get("/api/v1/ensemble").without("Host").header("Host", "localhost");
    let ensemble = ask(gateway.admin, &request).await.json();
    assert_eq!((&ensemble["ledger"], &ensemble["usable"]), (&"zookeeper".into(), &true.into()));
    let servers = ensemble["servers"].as_array().unwrap();
    let leaders = servers.iter().filter(|server| server["mode"] == "leader").count();
    assert_eq!((servers.len(), leaders), (3, 1), "{ensemble}");
    assert!(servers.iter().all(|server| server["serves"] == true), "{ensemble}");
    let sessions = ensemble["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{ensemble}");
    for session in sessions {
        assert_eq!(session["state"], "connected", "{ensemble}");
        assert_eq!(session["timeout_seconds"], 6.0, "{ensemble}");
        let lease = session["lease_seconds"].as_f64().unwrap();
        assert!(lease > 0.0 && lease < 6.0, "{ensemble}");
    }
}
