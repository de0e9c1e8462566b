//! What `oncegate doctor` finds, in an ensemble that is well and in one that is not.

use std::{
    net::SocketAddr,
    process::{Output, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::Instant,
};

use crate::{
    shared::{Home, Refusing, Upstream, post, run, soon},
    support::{Deployment, Ensemble, Fate, Kind, Link, Peer, Which, word},
};

/// A report: its exit code and its lines.
pub(crate) struct Report {
    code: Option<i32>,
    text: String,
}

/// What is found with a file of these words, within a bounded time.
pub(crate) async fn examine(text: &str) -> Report {
    let home = Home::new();
    std::fs::write(home.file(), text).unwrap();
    let started = Instant::now();
    let ended = run(&["doctor", "--config", home.file().to_str().unwrap()]).await;
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}: {text}", started.elapsed());
    Report { code: ended.status.code(), text }
}

// === impl Report ===

impl Report {
    /// The line about `subject`, without its many spaces.
    #[track_caller]
    pub(crate) fn line(&self, subject: &str) -> String {
        let mut lines = self.text.lines().filter(|line| line[6..].starts_with(subject));
        let line = lines.next().unwrap_or_else(|| panic!("{subject}: {}", self.text));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    pub(crate) fn says(&self, subject: &str, grade: &str, words: &[&str]) {
        let line = self.line(subject);
        let all = line.starts_with(grade) && words.iter().all(|word| line.contains(word));
        assert!(all, "{grade} {words:?}: {}", self.text);
    }
}

#[tokio::test]
async fn every_server_the_session_and_the_lease_that_follows_are_named() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let report = examine(&deployment.plan().text()).await;
    assert_eq!(report.code, Some(0), "{}", report.text);
    let servers = deployment.ensemble.servers();
    let lines: Vec<_> =
        servers.iter().map(|server| report.line(&format!("server {server}"))).collect();
    let modes = |mode| lines.iter().filter(|line| line.contains(mode)).count();
    assert_eq!((modes("leader"), modes("follower")), (1, 2), "{}", report.text);
    assert!(lines.iter().all(|line| line.contains("version 3.")), "{}", report.text);
    report.says("ensemble", "ok", &["3 servers vote", "a quorum is 2", "3 of 3"]);
    report.says("session", "ok", &["timeout 6s", "lease at least 1.75s"]);
    report.says("ticks", "", &["tickTime 500ms"]);
    report.says("agreement", "ok", &["all servers"]);
    for operation in ["create", "getChildren", "exists"] {
        let subject = format!("round trip {operation}");
        report.says(&subject, "", &["p50", "p99", "100 requests"]);
    }
    report.says("clock", "ok", &[]);
    report.says("packets", "ok", &["1000000 bytes"]);
    report.says(&format!("upstream payments {}", upstream.address), "ok", &[]);
    // Every line begins with how good it is.
    let grades = ["ok    ", "warn  ", "FAIL  "];
    assert!(report.text.lines().all(|line| grades.contains(&&line[..6])), "{}", report.text);
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn nothing_is_left_behind_and_no_record_is_changed() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let mut peer = Peer::of(&deployment.ensemble);
    peer.create(&deployment.root).await.unwrap();
    // With a root that is not there yet.
    let below =
        deployment.plan().text().replace(&deployment.root, &format!("{}/a/b", deployment.root));
    let report = examine(&below).await;
    report.says("root", "ok", &["not there yet", &deployment.root]);
    assert!(peer.tree(&deployment.root).await.is_empty());

    // Beside a gateway at work.
    let gateway = deployment.gateway().await;
    assert_eq!(gateway.ask(&post("k")).await.status, 201);
    let record = peer.get(&deployment.record("k")).await.unwrap();
    let paths: Vec<_> = peer.tree(&deployment.root).await.into_keys().collect();
    let report = examine(&deployment.plan().text()).await;
    report.says("root", "ok", &["can be written to"]);
    assert_eq!(peer.get(&deployment.record("k")).await.unwrap(), record);
    assert_eq!(peer.tree(&deployment.root).await.into_keys().collect::<Vec<_>>(), paths);
    assert!(gateway.ask(&post("k")).await.is_replay());
    assert_eq!(upstream.count(), 1);
}

fn start(home: &Home) -> Child {
    Command::new(env!("CARGO_BIN_EXE_oncegate"))
        .args(["doctor", "--config", home.file().to_str().unwrap()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// As Ctrl-C does.
async fn interrupt(doctor: Child) -> Output {
    let pid = doctor.id().and_then(|pid| Pid::from_raw(pid.try_into().unwrap())).unwrap();
    let stopped = Instant::now();
    kill_process(pid, Signal::INT).unwrap();
    let ended = soon("the end of the doctor", doctor.wait_with_output()).await.unwrap();
    assert!(stopped.elapsed() < Duration::from_secs(3), "{:?}", stopped.elapsed());
    assert_eq!(ended.status.code(), Some(1));
    ended
}

#[tokio::test]
async fn nothing_is_left_behind_by_one_that_is_stopped() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let mut peer = Peer::of(&deployment.ensemble);
    peer.create(&deployment.root).await.unwrap();
    let link = Link::to(&deployment.ensemble).await;
    link.next(Kind::Write, Fate::ReplyHeld);
    let home = Home::new();
    std::fs::write(home.file(), deployment.plan().via(&link).text()).unwrap();
    let doctor = start(&home);
    // A node is made, and its maker does not know it.
    link.holds().await;
    assert_eq!(peer.tree(&deployment.root).await.len(), 1);
    let stopped = Instant::now();
    let text = String::from_utf8(interrupt(doctor).await.stdout).unwrap();
    assert!(text.contains("stopped") && text.contains("ok    session"), "{text}");
    // Its session was closed, not left to expire: that would take six seconds.
    let gone = async { while !peer.tree(&deployment.root).await.is_empty() {} };
    soon("the end of its session", gone).await;
    assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
}

#[tokio::test]
async fn one_that_waits_for_servers_can_be_stopped() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.ledger("timeout: 20s");
    let link = Link::to(&deployment.ensemble).await;
    link.stall();
    let home = Home::new();
    let plan = deployment.plan().via(&link).text();
    std::fs::write(home.file(), plan.replace("session_timeout: 6s", "session_timeout: 60s"))
        .unwrap();
    let doctor = start(&home);
    // A question and a session each.
    link.connected(6).await;
    let text = String::from_utf8(interrupt(doctor).await.stdout).unwrap();
    assert!(text.contains("stopped"), "{text}");
}

#[tokio::test]
async fn a_server_that_is_down_is_a_warning_and_no_quorum_is_a_failure() {
    let upstream = Upstream::start();
    let deployment = Deployment::alone(upstream.address).await.ledger("timeout: 3s");
    // Two followers: nothing is elected meanwhile.
    let leader = match deployment.ensemble.leader().await {
        Which::Number(leader) => leader,
        Which::All => panic!("all lead"),
    };
    let (first, second) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    let server = |number: usize| format!("server {}", deployment.ensemble.servers()[number - 1]);
    deployment.ensemble.kill(Which::Number(first)).await;
    let report = examine(&deployment.plan().text()).await;
    assert_eq!(report.code, Some(0), "{}", report.text);
    report.says(&server(first), "warn", &["cannot be reached", "does it run"]);
    report.says("ensemble", "warn", &["2 of 3", "one more that fails"]);

    deployment.ensemble.pause(Which::Number(second)).await;
    let report = examine(&deployment.plan().text()).await;
    assert_eq!(report.code, Some(1), "{}", report.text);
    report.says(&server(second), "FAIL", &["does not answer", "hang"]);
    report.says(&server(leader), "FAIL", &["quorum"]);
    report.says("session", "FAIL", &["503"]);
}

/// No session can be had at this address, and the finding says why.
async fn finds_no_server(address: SocketAddr, words: &[&str]) {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await.ledger("timeout: 3s");
    let report = examine(&deployment.plan().at(&[address]).text()).await;
    assert_eq!(report.code, Some(1), "{}", report.text);
    report.says(&format!("server {address}"), "FAIL", words);
    report.says("session", "FAIL", &[]);
    report.says("upstream", "ok", &[]);

    // As one of several it does not stop a gateway.
    let servers = [address, deployment.ensemble.servers()[0]];
    let report = examine(&deployment.plan().at(&servers).text()).await;
    assert_eq!(report.code, Some(0), "{}", report.text);
    report.says(&format!("server {address}"), "warn", words);
    report.says("session", "ok", &[]);
}

#[tokio::test]
async fn a_server_that_nobody_reaches_is_named() {
    finds_no_server(Refusing::new().address, &["cannot be reached", "does it run"]).await;
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_named() {
    finds_no_server(Upstream::start().address, &["is it a ZooKeeper server"]).await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_named() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    finds_no_server(silent.local_addr().unwrap(), &["does not answer within 1 s"]).await;
}

#[tokio::test]
async fn a_server_that_closes_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // What was read is not reset.
            tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await.ok();
        }
    });
    finds_no_server(address, &["closes connections without an answer"]).await;
    closing.abort();
}

#[tokio::test]
async fn servers_of_two_ensembles_are_told_apart() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let (other, _wires) = Ensemble::own().await;
    let servers = [deployment.ensemble.servers()[0], other.servers()[0]];
    let report = examine(&deployment.plan().at(&servers).text()).await;
    assert_eq!(report.code, Some(1), "{}", report.text);
    report.says("agreement", "FAIL", &[&other.servers()[0].to_string(), "different ensembles"]);
}

#[tokio::test]
async fn a_timeout_that_the_servers_change_is_told_and_one_without_a_lease_fails() {
    let upstream = Upstream::start();
    // The servers allow twenty ticks of half a second.
    let deployment = Deployment::to(upstream.address).await.session_timeout("30s");
    let text = deployment.plan().text();
    let report = examine(&text).await;
    assert_eq!(report.code, Some(0), "{}", report.text);
    report.says("session", "warn", &["timeout 10s", "30s"]);

    let report = examine(&text.replace("tick_time: 500ms", "tick_time: 6s")).await;
    assert_eq!(report.code, Some(1), "{}", report.text);
    report.says("server", "FAIL", &["10s", "session_timeout", "maxSessionTimeout"]);
}

#[tokio::test]
async fn a_tick_longer_than_configured_fails() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let text = deployment.plan().text().replace("tick_time: 500ms", "tick_time: 400ms");
    let report = examine(&text).await;
    assert_eq!(report.code, Some(1), "{}", report.text);
    report.says("ticks", "FAIL", &["500ms", "400ms", "ledger.zookeeper.tick_time"]);
}

#[tokio::test]
async fn who_may_use_the_root_is_told_and_no_credential_is_shown() {
    const AUTH: &str = "auth: [ { scheme: digest, credentials: 'oncegate:of-alice' } ]";
    const WRONG: &str = "auth: [ { scheme: digest, credentials: 'oncegate:of-bob' } ]";
    let upstream = Upstream::start();
    let open = Deployment::to(upstream.address).await;
    drop(open.gateway().await);
    let report = examine(&open.plan().text()).await;
    report.says("access", "warn", &["whoever reaches", "ledger.zookeeper.auth"]);
    let report = examine(&open.plan().zookeeper(AUTH).text()).await;
    report.says("access", "warn", &["open to others", "setAcl -R", &open.root]);
    assert_eq!(report.code, Some(0), "{}", report.text);
    // A test that has the ensemble twice could wait for one that wants it alone.
    drop(open);

    let closed = Deployment::to(upstream.address).await.zookeeper(AUTH);
    drop(closed.gateway().await);
    let report = examine(&closed.plan().text()).await;
    report.says("credentials", "ok", &["digest:oncegate"]);
    report.says("access", "ok", &["closed to others", "digest:oncegate"]);
    assert_eq!(report.code, Some(0), "{}", report.text);
    assert!(!report.text.contains("alice"), "{}", report.text);
    for wrong in ["", WRONG] {
        let report = examine(&closed.plan().zookeeper(wrong).text()).await;
        assert_eq!(report.code, Some(1), "{}", report.text);
        report.says("root", "FAIL", &["not authorized", "ledger.zookeeper.auth", &closed.root]);
        assert!(!report.text.contains("of-bob"), "{}", report.text);
    }
}

#[tokio::test]
async fn servers_too_old_for_the_protocol_are_told() {
    let upstream = Upstream::start();
    let deployment = Deployment::to(upstream.address).await;
    let link = Link::to(&deployment.ensemble).await;
    link.next(Kind::Write, Fate::Unknown);
    let report = examine(&deployment.plan().via(&link).text()).await;
    assert_eq!(report.code, Some(1), "{}", report.text);
    report.says("root", "FAIL", &["too old", "3.8.4"]);
}

#[tokio::test]
async fn a_server_that_is_read_only_is_of_no_use_and_told() {
    let upstream = Upstream::start();
    let (ensemble, _wires) = Ensemble::own_with("-Dreadonlymode.enabled=true").await;
    for number in [2, 3] {
        ensemble.kill(Which::Number(number)).await;
    }
    let server = ensemble.servers()[0];
    let alone = async { while !word(server, "srvr").await.contains("Mode: read-only") {} };
    soon("a server that is read-only", alone).await;

    let deployment = Deployment::on(ensemble, upstream.address).ledger("timeout: 2s");
    let report = examine(&deployment.plan().at(&[server]).text()).await;
    assert_eq!(report.code, Some(1), "{}", report.text);
    report.says(&format!("server {server}"), "FAIL", &["read-only", "cut off from its quorum"]);

    let gateway = deployment.plan().at(&[server]).start().await;
    assert_eq!(gateway.ask(&post("k")).await.code(), "ledger-unavailable");
    gateway
        .logged_where("why there is no session", |event| {
            event["message"] == "no session" && event.to_string().contains("read-only")
        })
        .await;
    assert_eq!(upstream.count(), 0);
}
