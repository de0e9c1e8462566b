//! A server that speaks TLS and asks for certificates, and gateways with the right and wrong ones.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tokio::time::{Instant, timeout};

use crate::{
    certificates::{Authority, Signed},
    doctor::examine,
    shared::{Gateway, Home, Upstream, post, soon},
    support::{Deployment, Ensemble, Which},
};

/// Key and certificate in one file, as ZooKeeper servers read them.
fn in_one_file(signed: &Signed) -> PathBuf {
    let path = signed.certificate.with_extension("both.pem");
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    fs::write(&path, read(&signed.private_key) + &read(&signed.certificate)).unwrap();
    path
}

async fn server(ca: &Authority) -> Ensemble {
    let shown = ca.sign("server", "IP:127.0.0.1,DNS:zk.test");
    Ensemble::secure(&in_one_file(&shown), &ca.certificate()).await
}

pub(crate) fn tls(ca: &Path, own: Option<&Signed>) -> String {
    let own = own.map(|own| {
        let (certificate, key) = (own.certificate.display(), own.private_key.display());
        format!(", certificate: '{certificate}', private_key: '{key}'")
    });
    format!("tls: {{ ca: '{}'{} }}", ca.display(), own.unwrap_or_default())
}

/// When the certificate ends, in seconds since the Unix epoch.
fn end(certificate: &Path) -> f64 {
    let said = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let openssl = ["x509", "-noout", "-enddate", "-in"];
    let end = said(Command::new("openssl").args(openssl).arg(certificate));
    let end = end.strip_prefix("notAfter=").unwrap();
    said(Command::new("date").args(["-d", end, "+%s"])).parse().unwrap()
}

async fn ends(gateway: &Gateway, file: &str, certificate: &Path) {
    let name = "oncegate_certificate_expiry_timestamp_seconds";
    gateway.metric_is(name, &[("file", file)], end(certificate)).await;
}

async fn ready(gateway: &Gateway) {
    let ready = async { while gateway.ask_admin("/readyz").await.status != 200 {} };
    soon("a usable session", ready).await;
}

#[tokio::test]
async fn gateways_with_certificates_execute_once_and_replay_over_tls() {
    let ca = Authority::new();
    let own = ca.sign("gateway", "DNS:gateway");
    let upstream = Upstream::start();
    let line = tls(&ca.certificate(), Some(&own));
    let deployment = Deployment::on(server(&ca).await, upstream.address).zookeeper(&line);
    let (first, second) = (deployment.gateway().await, deployment.gateway().await);

    assert_eq!(first.ask(&post("k")).await.status, 201);
    assert!(second.ask(&post("k")).await.is_replay());
    assert_eq!(upstream.count(), 1);
    let key = fs::read_to_string(&own.private_key).unwrap();
    for gateway in [first, second] {
        assert!(!gateway.log_text().contains(key.lines().nth(1).unwrap()));
    }
}

#[tokio::test]
async fn servers_that_speak_tls_only_are_examined_and_counted() {
    let ca = Authority::new();
    let own = ca.sign_for(15, "gateway", "DNS:gateway");
    let upstream = Upstream::start();
    let line = tls(&ca.certificate(), Some(&own));
    let deployment = Deployment::on(server(&ca).await, upstream.address).zookeeper(&line);

    let report = examine(&deployment.plan().text()).await;
    report.says("certificate ca", "warn", &["expires", "replace the file"]);
    report.says("certificate certificate", "ok", &["expires"]);
    let server = format!("server {}", deployment.ensemble.servers()[0]);
    assert!(report.line(&server).contains("answers in"));
    report.says("root", "ok", &["the first gateway can make it"]);

    let gateway = deployment.gateway().await;
    gateway.metric_is("zk_quorum_size", &[], 1.0).await;
}

/// Such a gateway starts, forwards nothing that has a key, and says why: the servers may be mended.
async fn stays_closed(deployment: &Deployment, at: SocketAddr, named: &str, line: &str) -> String {
    let text = deployment.plan().at(&[at]).zookeeper(line).text();
    let text = text.replace(&format!("'{at}'"), &format!("'{named}:{}'", at.port()));
    let home = Home::new();
    let started = Instant::now();
    let gateway = home.start_with(&text).await;
    let answer = gateway.ask(&post("k")).await;
    assert_eq!((answer.status, answer.code()), (503, "ledger-unavailable".into()));
    let told = async {
        loop {
            let answer = gateway.ask_admin("/readyz").await;
            let said = String::from_utf8(answer.body).unwrap();
            if said.contains("; ") {
                return (answer.status, said);
            }
        }
    };
    let bound = Duration::from_secs(20);
    let (status, said) = timeout(bound, told).await.expect("it says what is wrong");
    assert_eq!(status, 503, "{said}");
    assert!(started.elapsed() < bound, "{said}");
    let server = format!("{named}:{}", at.port());
    assert!(said.contains(&server), "{said}");
    let is_about =
        |event: &serde_json::Value| event["level"] == "WARN" && event.to_string().contains(&server);
    gateway.logged_where("an event about the server", is_about).await;
    said
}

#[tokio::test]
async fn what_does_not_fit_is_named_with_its_remedy_and_nothing_is_forwarded() {
    let (ca, stranger) = (Authority::new(), Authority::named("a stranger"));
    let namesake = Authority::new();
    let (own, alien) = (ca.sign("gateway", "DNS:gateway"), stranger.sign("g", "DNS:gateway"));
    let upstream = Upstream::start();
    let deployment = Deployment::on(server(&ca).await, upstream.address).ledger("timeout: 1s");
    let (secure, plain) = (deployment.ensemble.servers()[0], Ensemble::plain());
    let right = tls(&ca.certificate(), Some(&own));
    let other_ca = tls(&stranger.certificate(), Some(&own));
    let former_ca = tls(&namesake.certificate(), Some(&own));
    let (bare, unknown) = (tls(&ca.certificate(), None), tls(&ca.certificate(), Some(&alien)));
    let cases = [
        (secure, "127.0.0.1", other_ca, "did not sign; give the certificates that signed"),
        (secure, "127.0.0.1", former_ca, "did not sign; give the certificates that signed"),
        (secure, "127.0.0.1", bare, "asks for a certificate of this gateway; write `certificate`"),
        (secure, "127.0.0.1", unknown, "does not accept ledger.zookeeper.tls.certificate; have"),
        (plain, "127.0.0.1", right.clone(), "does not speak TLS at this port; write its secure"),
        (secure, "localhost", right, "for another name"),
        (secure, "127.0.0.1", String::new(), "is this a port for TLS"),
    ];
    for (at, named, line, expected) in cases {
        let said = stays_closed(&deployment, at, named, &line).await;
        assert!(said.contains(expected), "{line}: {said}");
    }
    assert_eq!(upstream.count(), 0);
}

#[tokio::test]
async fn certificates_that_are_replaced_in_their_files_are_taken_without_a_restart() {
    let (old, new) = (Authority::new(), Authority::new());
    let upstream = Upstream::start();
    let shown = in_one_file(&old.sign("server", "IP:127.0.0.1"));
    let ensemble = Ensemble::secure(&shown, &old.certificate()).await;
    let own = old.sign_for(5, "gateway", "DNS:gateway");
    let line = tls(&old.certificate(), Some(&own));
    let deployment = Deployment::on(ensemble, upstream.address).zookeeper(&line);
    let gateway = deployment.gateway().await;
    assert_eq!(gateway.ask(&post("before")).await.status, 201);
    ends(&gateway, "ca", &old.certificate()).await;
    ends(&gateway, "certificate", &own.certificate).await;

    // Nobody trusts what was issued before.
    let next = new.sign_for(9, "gateway", "DNS:gateway");
    // A chain ends with the first of its certificates to end, which is the last one here.
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let chain = read(&next.certificate) + &read(&new.certificate());
    fs::write(&next.certificate, chain).unwrap();
    let copies = [
        (in_one_file(&new.sign("server", "IP:127.0.0.1")), shown),
        (next.certificate, own.certificate),
        (next.private_key, own.private_key),
        (new.certificate(), old.certificate()),
    ];
    for (from, to) in copies {
        fs::copy(from, to).unwrap();
    }
    deployment.ensemble.restart(Which::All).await;

    gateway
        .logged_where("an event about the files", |event| {
            event["message"] == "files of ledger.zookeeper.tls were read anew"
        })
        .await;
    ends(&gateway, "ca", &new.certificate()).await;
    ends(&gateway, "certificate", &new.certificate()).await;
    ready(&gateway).await;
    assert_eq!(gateway.ask(&post("after")).await.status, 201);
    assert!(gateway.ask(&post("before")).await.is_replay());
    assert_eq!(upstream.count(), 2);
}
