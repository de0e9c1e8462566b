//! What is nobody's business stands in no log, no metric, no answer of an operator's API, no error.

use rustix::process::Signal;

use crate::{
    shared::{Client, Gateway, Step, Upstream, answer, ask, get, post, run_with},
    support::{Deployment, Link},
};

/// Of callers, of what they sent and got, of the gateways themselves.
const SECRETS: [&str; 11] = [
    "scope-value",
    "client-credential",
    "request-text",
    "query-text",
    "answer-text",
    "decided-text",
    "order-number",
    "of-alice",
    "digest-of-others",
    "the-key-secret-of-all",
    "admin-token-of-all",
];

const AUTH: &str = "auth: [ { scheme: digest, credentials: 'oncegate:of-alice' } ]";
const WRONG: &str = "auth: [ { scheme: digest, credentials: 'oncegate:digest-of-others' } ]";
const TOP: &str = "key_secret: the-key-secret-of-all\n\
                   log: { level: trace, keys: hashed }\n\
                   drain_timeout: 50ms";

/// What was said, beside what clients and upstream said to each other.
#[derive(Default)]
struct Said(Vec<(String, String)>);

impl Said {
    fn add(&mut self, who: impl Into<String>, what: impl Into<String>) {
        self.0.push((who.into(), what.into()));
    }

    /// One of the admin listener's answers.
    async fn admin(&mut self, gateway: &Gateway, target: &str) -> String {
        let request = get(target).header("Authorization", "Bearer admin-token-of-all");
        let answer = ask(gateway.admin, &request).await;
        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(answer.status, 200, "{target}: {text}");
        self.add(target, &text);
        text
    }

    /// What a command prints.
    async fn command(&mut self, gateway: &Gateway, words: &[&str], input: &str) -> i32 {
        let url = format!("http://{}", gateway.admin);
        let words = [&["keys"], words, &["--admin", &url]].concat();
        let environment = [("ONCEGATE_ADMIN_TOKEN", "admin-token-of-all")];
        let ended = run_with(&words, &environment, input).await;
        for bytes in [&ended.stdout, &ended.stderr] {
            self.add(words.join(" "), String::from_utf8_lossy(bytes));
        }
        ended.status.code().unwrap()
    }

    fn hides(&self, secrets: &[&str]) {
        for (who, what) in &self.0 {
            for secret in secrets {
                let found = what.lines().find(|line| line.contains(secret));
                assert_eq!(found, None, "{who} says {secret}");
            }
        }
    }
}

#[tokio::test]
async fn whatever_happens_at_any_level_of_the_log_no_secret_shows() {
    let upstream = Upstream::always(answer("200 OK", "", "answer-text"));
    let deployment = Deployment::to(upstream.address)
        .await
        .zookeeper(AUTH)
        .rules("in_progress: { wait: 20s }")
        .ledger("timeout: 1s")
        .admin("token: admin-token-of-all")
        .top(TOP);
    let link = Link::to(&deployment.ensemble).await;
    let (first, second) = (deployment.gateway().await, deployment.gateway_via(&link).await);
    let request = |number: usize| {
        post(&format!("order-number-{number}"))
            .caller("scope-value")
            .header("Authorization", "Bearer client-credential")
            .to("/v1/charges?query-text")
            .body("request-text")
    };
    let mut said = Said::default();

    // Executed, replayed, compared, refused, left unknown, told so: on both gateways.
    for gateway in [&first, &second] {
        assert_eq!(gateway.ask(&request(1)).await.status, 200);
        assert_eq!(gateway.ask(&request(1).body("request-text 2")).await.status, 422);
        assert_eq!(gateway.ask(&request(1).header("X-Api-Key", "scope-value-2")).await.status, 200);
        let two_keys = request(1).header("Idempotency-Key", "order-number-2");
        assert_eq!(gateway.ask(&two_keys).await.status, 400);
        assert_eq!(gateway.ask(&request(1).to("/elsewhere?query-text")).await.status, 200);
    }
    for (number, script) in [
        (10, vec![Step::Close]),
        (11, vec![Step::Write(b"answer-text nonsense\r\n\r\n".to_vec())]),
        (12, answer("503 No", "", "answer-text")),
        (13, answer("429 No", "", "answer-text")),
    ] {
        upstream.now(move |_| script.clone());
        first.ask(&request(number)).await;
        said.add("a refusal", String::from_utf8(second.ask(&request(number)).await.body).unwrap());
    }
    // The last one was released, and the upstream's own words were passed on again.
    said.0.pop();

    // A session is lost while the upstream works, and comes back.
    upstream.now(|_| vec![Step::Wait]);
    let count = upstream.count();
    let mut client = Client::connect(second.address).await;
    client.send(&request(20)).await;
    upstream.received(count + 1).await;
    link.stall();
    let refusal = client.answer().await;
    assert_eq!(refusal.code(), "session-lost");
    said.add("session-lost", String::from_utf8(refusal.body).unwrap());
    said.add("/readyz", String::from_utf8(second.ask_admin("/readyz").await.body).unwrap());
    let refusal = second.ask(&request(21)).await;
    assert_eq!(refusal.code(), "ledger-unavailable");
    said.add("ledger-unavailable", String::from_utf8(refusal.body).unwrap());
    link.flow();

    // What an operator sees and does.
    let scope = "X-Api-Key: scope-value\n";
    let lookup = ["lookup", "order-number-10", "--route", "charges", "--scope-from", "-", "--json"];
    assert_eq!(said.command(&first, &lookup, scope).await, 0);
    // The command line names the key; its output does not.
    let found: serde_json::Value = serde_json::from_str(&said.0[said.0.len() - 2].1).unwrap();
    let id = found["id"].as_str().unwrap().to_owned();
    let resolve =
        ["resolve", &id, "--status", "200", "--body", "-", "--reason", "seen at the bank"];
    assert_eq!(said.command(&first, &resolve, "decided-text").await, 0);
    assert_eq!(first.ask(&request(10)).await.body, b"decided-text");
    assert_eq!(said.command(&first, &["release", &id, "--reason", "a slip"], "").await, 1);
    for target in ["/livez", "/readyz", "/metrics", "/api/v1/keys", "/api/v1/ensemble"] {
        said.admin(&first, target).await;
    }
    let config = said.admin(&first, "/api/v1/config").await;
    assert!(config.contains("digest"), "{config}");
    said.admin(&first, &format!("/api/v1/keys/{id}")).await;

    // Cut off by the end of the gateway; started with credentials that are not the nodes' owner's.
    let mut client = Client::connect(first.address).await;
    let count = upstream.count();
    client.send(&request(30)).await;
    upstream.received(count + 1).await;
    first.signal(Signal::TERM);
    assert_eq!(client.answer().await.code(), "session-lost");
    first.logged("gateway stopped").await;
    let (_, refused) = deployment.plan().zookeeper(WRONG).fail().await;

    for (who, log) in [("first", first.log_text()), ("second", second.log_text())] {
        assert!(log.contains("\"DEBUG\"") && log.contains("request ended"), "{who}");
        assert!(log.contains("\"acquired\""), "{who}");
        said.add(who, log);
    }
    said.add("a failed start", refused);
    said.hides(&SECRETS);
}
