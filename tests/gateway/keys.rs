//! What an operator sees and decides, through the commands and the API of the real binary.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Answer, Client, Config, Gateway, Home, Request, Step, Upstream, answer, ask, post, run_with,
};

const TOKEN: &str = "operator-token";

/// What a command said, and its exit code.
struct Said {
    code: i32,
    text: String,
    error: String,
}

/// `oncegate keys` with these words, against `gateway`.
async fn keys(gateway: &Gateway, words: &[&str], input: &str) -> Said {
    keys_as(gateway, TOKEN, words, input).await
}

async fn keys_as(gateway: &Gateway, token: &str, words: &[&str], input: &str) -> Said {
    let url = format!("http://{}", gateway.admin);
    let words = [&["keys"], words, &["--admin", &url]].concat();
    said(&words, &[("ONCEGATE_ADMIN_TOKEN", token), ("USER", "the-operator")], input).await
}

async fn said(words: &[&str], environment: &[(&str, &str)], input: &str) -> Said {
    let ended = run_with(words, environment, input).await;
    Said {
        code: ended.status.code().unwrap(),
        text: String::from_utf8(ended.stdout).unwrap(),
        error: String::from_utf8(ended.stderr).unwrap(),
    }
}

/// A gateway whose API needs the token, and an upstream that breaks off after each request.
async fn start(config: impl FnOnce(Config) -> Config) -> (Upstream, Gateway, Home) {
    let upstream = Upstream::always(vec![Step::Close]);
    let config = config(Config::to(upstream.address).admin(&format!("token: {TOKEN}")));
    let (gateway, home) = Gateway::start(&config).await;
    (upstream, gateway, home)
}

/// Makes the key unknown and gives its id.
async fn left_unknown(gateway: &Gateway, key: &str) -> String {
    assert_eq!(gateway.ask(&post(key)).await.code(), "upstream-interrupted");
    let words = ["lookup", key, "--route", "charges", "--scope-from", "-", "--json"];
    let found = keys(gateway, &words, "X-Api-Key: alice-secret\n").await;
    let found: Value = serde_json::from_str(&found.text).unwrap_or_else(|_| panic!("{found:?}"));
    assert_eq!(found["state"], "unknown");
    found["id"].as_str().unwrap().to_owned()
}

// R11: what a person found out is the answer that every retry gets.
#[tokio::test]
async fn a_key_that_was_resolved_by_hand_is_replayed_and_runs_no_more() {
    let (upstream, gateway, home) = start(Config::durable).await;
    let id = left_unknown(&gateway, "k").await;
    let listed = keys(&gateway, &["list", "--state", "unknown"], "").await;
    assert_eq!(listed.code, 0, "{listed:?}");
    let row = listed.text.lines().nth(1).unwrap();
    assert!(row.starts_with("unknown  charges  1 ") && row.ends_with(&id), "{}", listed.text);

    let words = [
        "resolve",
        &id,
        "--status",
        "201",
        "--header",
        "Location: /v1/charges/7",
        "--header",
        "X-Note: by hand",
        "--body",
        "-",
        "--reason",
        "charge 7 is in the upstream's ledger",
    ];
    let resolved = keys(&gateway, &words, "receipt 7").await;

    assert_eq!(resolved.code, 0, "{resolved:?}");
    assert!(resolved.text.starts_with(&format!("{id} is completed: retries get 201 until ")));
    for _ in 0..2 {
        let replay = gateway.ask(&post("k")).await;
        assert_eq!((replay.status, &*replay.body), (201, &b"receipt 7"[..]));
        assert_eq!(replay.header("location"), Some("/v1/charges/7"));
        assert_eq!(replay.header("x-note"), Some("by hand"));
        assert!(replay.is_replay() && replay.header("idempotency-expires").is_some());
    }
    assert_eq!(gateway.ask(&post("k").body("another")).await.code(), "key-reused");
    let shown = keys(&gateway, &["show", &id], "").await;
    assert!(shown.text.contains("state          completed\n"), "{}", shown.text);
    gateway.kill();
    let gateway = home.start_with(&std::fs::read_to_string(home.file()).unwrap()).await;
    assert_eq!(gateway.ask(&post("k")).await.body, b"receipt 7");
    assert_eq!(upstream.count(), 1);
}

// R7
#[tokio::test]
async fn a_key_that_was_released_by_hand_runs_once_more_under_a_higher_token() {
    let (upstream, gateway, _home) = start(Config::durable).await;
    let id = left_unknown(&gateway, "k").await;
    assert_eq!(gateway.ask(&post("k")).await.code(), "outcome-unknown");
    upstream.now(|_| answer("201 Created", "", "receipt"));

    let words = ["release", &id, "--reason", "the upstream has no such charge"];
    let released = keys(&gateway, &words, "").await;

    assert_eq!(released.code, 0, "{released:?}");
    assert_eq!(gateway.ask(&post("k")).await.body, b"receipt");
    assert!(gateway.ask(&post("k")).await.is_replay());
    let received = upstream.all();
    assert_eq!(received.len(), 2);
    let token = |at: usize| {
        let token = received[at].header("idempotency-fencing-token").unwrap();
        token.parse::<u64>().unwrap()
    };
    assert!(token(1) > token(0));
    assert_eq!(received[1].header("idempotency-attempt"), Some("1"));
    let again = keys(&gateway, &words, "").await;
    assert_eq!(again.code, 1);
    assert!(again.error.contains("(key-completed)"), "{again:?}");
}

#[tokio::test]
async fn a_key_in_flight_is_shown_and_not_decided_about() {
    let (upstream, gateway, _home) = start(|config| config).await;
    upstream.now(|_| [vec![Step::Wait], answer("200 OK", "", "done")].concat());
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiting = Client::connect(gateway.address).await;
    waiting.send(&post("k")).await;
    gateway.waiters(1).await;

    let listed = keys(&gateway, &["list", "--json"], "").await;
    let listed: Value = serde_json::from_str(&listed.text).unwrap();
    let key = &listed["keys"][0];
    assert_eq!((&key["state"], &key["waiters"]), (&json!("in_progress"), &json!(1)));
    assert_eq!((&key["expires_at"], &key["response"]), (&Value::Null, &Value::Null));
    let id = key["id"].as_str().unwrap();
    for (words, code) in [
        (&["resolve", id, "--status", "200", "--reason", "r"][..], "key-in-progress"),
        (&["release", id, "--reason", "r"], "key-in-progress"),
        (&["release", id, "--reason", "r", "--force"], "force-refused"),
    ] {
        let refused = keys(&gateway, words, "").await;
        assert_eq!(refused.code, 1);
        assert!(refused.error.contains(&format!("({code})")), "{refused:?}");
        assert_eq!(gateway.logged_where(code, |event| event["result"] == code).await["key_id"], id);
    }
    upstream.go();
    assert_eq!(client.answer().await.body, b"done");
    assert!(waiting.answer().await.is_replay());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_decision_is_in_the_audit_log_and_no_secret_is() {
    let (_upstream, gateway, _home) =
        start(|config| config.top("log: { level: debug, keys: hashed }")).await;
    let id = left_unknown(&gateway, "order-1").await;
    let words = [
        "resolve",
        &id,
        "--status",
        "200",
        "--header",
        "X-Note: header-secret",
        "--body",
        "-",
        "--reason",
        "seen at the bank",
    ];
    assert_eq!(keys(&gateway, &words, "body-secret").await.code, 0);
    let words = ["release", &id, "--reason", "a slip", "--actor", "bob"];
    assert_eq!(keys(&gateway, &words, "").await.code, 1);

    let event = gateway.logged_where("the decision", |event| event["result"] == "done").await;
    assert_eq!((&event["target"], &event["action"]), (&json!("audit"), &json!("resolve")));
    assert_eq!((&event["key_id"], &event["status"]), (&json!(id), &json!(200)));
    assert_eq!(event["reason"], "seen at the bank");
    assert_eq!(event["actor"], "the-operator");
    assert!(event["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{event}");
    let refused = |event: &Value| event["result"] == "key-completed";
    let event = gateway.logged_where("the refused decision", refused).await;
    assert_eq!((&event["action"], &event["actor"]), (&json!("release"), &json!("bob")));
    let log = gateway.log_text();
    for secret in ["alice-secret", TOKEN, "header-secret", "body-secret", "order-1"] {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
}

#[tokio::test]
async fn without_the_token_the_api_tells_nothing() {
    let (_upstream, gateway, _home) = start(|config| config).await;
    let id = left_unknown(&gateway, "k").await;
    for token in ["", "wrong"] {
        let refused = keys_as(&gateway, token, &["release", &id, "--reason", "r"], "").await;
        assert_eq!(refused.code, 1);
        assert!(refused.error.contains("(unauthorized)") && !refused.error.contains("wrong"));
    }
    assert_eq!(gateway.ask_admin("/api/v1/config").await.status, 401);
    for free in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(gateway.ask_admin(free).await.status, 200);
    }
    let config = authorised(&gateway, "/api/v1/config").await;
    assert_eq!(config.json()["admin"]["token"], "<hidden>");
    assert_eq!(config.json()["routes"][0]["idempotency"]["retention"]["completed"], "1d");
    assert_eq!(authorised(&gateway, "/api/v1/ensemble").await.json()["ledger"], "embedded");
    assert_eq!(authorised(&gateway, "/api/v1/openapi.json").await.json()["openapi"], "3.1.0");
}

async fn authorised(gateway: &Gateway, target: &str) -> Answer {
    let token = format!("Bearer {TOKEN}");
    ask(gateway.admin, &Request::new("GET", target).header("Authorization", token)).await
}

#[tokio::test]
async fn the_masked_configuration_and_the_names_of_keys_follow_a_reload() {
    let upstream = Upstream::always(vec![Step::Close]);
    let config = Config::to(upstream.address).admin(&format!("token: {TOKEN}"));
    let (gateway, home) = Gateway::start(&config).await;
    let renewed = config
        .limits("max_in_flight: 77")
        .route("name: refunds, match: { path_prefix: /v1/refunds }, idempotency: { scope: none }");
    home.write(&renewed);
    gateway.signal(Signal::HUP);
    gateway.logged("configuration reloaded").await;

    let shown = authorised(&gateway, "/api/v1/config").await.json();
    assert_eq!(shown["limits"]["max_in_flight"], 77);
    gateway.ask(&post("k").to("/v1/refunds")).await;
    let found = keys(&gateway, &["lookup", "\"k\"", "--route", "refunds"], "").await;
    assert_eq!(found.code, 0, "{found:?}");
    assert!(found.text.contains("route          refunds\n"), "{}", found.text);
}

#[tokio::test]
async fn the_path_of_a_key_needs_no_gateway_and_is_the_id_that_the_gateway_has() {
    let (_upstream, gateway, home) = start(|config| config.top("key_secret: '${SECRET:-s}'")).await;
    let id = left_unknown(&gateway, "k").await;
    let file = home.file();
    let words = ["keys", "path", "k", "--route", "charges", "--scope-from", "-", "--config"];
    let words = [&words[..], &[file.to_str().unwrap()]].concat();
    let scope = "\r\nx-api-key:alice-secret\r\n";

    let path = said(&words, &[], scope).await;
    assert_eq!((path.code, &*path.text), (0, &*format!("{id}\n")), "{path:?}");
    assert!(path.error.contains("no znodes"), "{path:?}");
    let other = said(&words, &[("SECRET", "t")], scope).await;
    assert_ne!(other.text, path.text);
    let json = said(&[&words[..], &["--json"]].concat(), &[], scope).await;
    assert_eq!(serde_json::from_str::<Value>(&json.text).unwrap()["id"], id);
}

#[tokio::test]
async fn wrong_words_end_with_2_and_what_is_not_there_with_1() {
    let (_upstream, gateway, _home) = start(|config| config).await;
    let absent = "0".repeat(64);
    for (words, input, code) in [
        (&["show", "nonsense"][..], "", 2),
        (&["show", &absent], "", 1),
        (&["release", &absent, "--reason", "r"], "", 1),
        (&["release", &absent], "", 2),
        (&["release", &absent, "--reason", ""], "", 2),
        (&["resolve", &absent, "--reason", "r"], "", 2),
        (&["resolve", &absent, "--reason", "r", "--status", "100"], "", 2),
        (&["resolve", &absent, "--reason", "r", "--status", "200", "--header", "a"], "", 2),
        (&["resolve", &absent, "--reason", "r", "--status", "200", "--body", "/no"], "", 2),
        (&["lookup", "k", "--route", "charges"], "", 2),
        (&["lookup", "k", "--route", "odd"], "", 1),
        (&["lookup", "k", "--route", "charges", "--scope-from", "-"], "X-Api-Key: a", 1),
        (&["lookup", "k", "--route", "charges", "--scope-from", "-"], "a-secret-alone", 2),
        (&["lookup", "k,k", "--route", "charges", "--scope-from", "-"], "X-Api-Key: a", 2),
        (&["list", "--state", "odd"], "", 2),
        (&["list", "--after", "odd"], "", 2),
        (&["list"], "", 0),
    ] {
        let ended = keys(&gateway, words, input).await;
        assert_eq!(ended.code, code, "{words:?}: {ended:?}");
        assert!(!ended.error.contains("a-secret-alone"), "{}", ended.error);
        assert_eq!(ended.error.is_empty(), code == 0, "{words:?}: {ended:?}");
    }
    assert_eq!(keys(&gateway, &["list"], "").await.text, "no keys\n");
    let url = format!("http://{}", gateway.admin);
    gateway.kill();
    assert_eq!(said(&["keys", "list", "--admin", &url], &[], "").await.code, 1);
}

impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {}\n{}{}", self.code, self.text, self.error)
    }
}
