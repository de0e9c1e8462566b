//! The ledger's file: whose it is, and what is said when it cannot be read or written.

use rustix::process::Signal;

use crate::support::{Client, Config, Gateway, Home, Step, Upstream, answer, get, post, soon};

#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused_and_disturbs_nothing() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable();
    let (gateway, home) = Gateway::start(&config).await;
    let first = gateway.ask(&post("k")).await;

    let (code, said) = home.fail(&config).await;

    assert_eq!(code, 1);
    assert!(said.contains("in use") || said.contains("another process"), "{said}");
    assert!(said.contains(home.ledger().to_str().unwrap()), "{said}");
    assert_eq!(gateway.ask(&post("l")).await.status, 201);
    gateway.kill();
    let gateway = home.start(&config).await;
    assert_eq!(gateway.ask(&post("k")).await.lasting(), first.lasting());
    assert_eq!(upstream.count(), 2);
}

#[tokio::test]
async fn a_file_that_is_not_ours_or_damaged_is_refused_and_never_overwritten() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable();
    let (gateway, home) = Gateway::start(&config).await;
    gateway.ask(&post("k")).await;
    gateway.kill();
    let good = std::fs::read(home.ledger()).unwrap();
    let mut scrambled = good.clone();
    scrambled[64..].fill(0xa5);
    let damaged = [
        ("text", b"important notes of somebody else\n".repeat(1000)),
        ("zeros", vec![0; 100_000]),
        ("cut", good[..good.len() / 3].to_vec()),
        ("scrambled", scrambled),
    ];
    for (what, bytes) in damaged {
        std::fs::write(home.ledger(), &bytes).unwrap();
        let (code, said) = home.fail(&config).await;
        assert_eq!(code, 1, "{what}: {said}");
        assert!(said.contains(home.ledger().to_str().unwrap()), "{what}: {said}");
        assert!(!said.contains("panicked"), "{what}: {said}");
        assert!(std::fs::read(home.ledger()).unwrap() == bytes, "{what}: the file was changed");
    }
    std::fs::write(home.ledger(), &good).unwrap();
    let gateway = home.start(&config).await;
    assert!(gateway.ask(&post("k")).await.is_replay());
}

#[tokio::test]
async fn a_file_that_cannot_be_made_is_a_clear_error() {
    let upstream = Upstream::start();
    let home = Home::new();
    let config = Config::to(upstream.address).durable();
    for path in [home.path().join("missing").join("ledger.redb"), home.path().to_owned()] {
        let path = path.to_str().unwrap();
        let (code, said) = home.fail_with(&config.text(path)).await;
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(path), "{said}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_a_clear_error() {
    let upstream = Upstream::start();
    let home = Home::new();
    let config = Config::to(upstream.address).text("");
    let (code, said) =
        home.fail_with(&config.replacen("127.0.0.1:0", &upstream.address.to_string(), 1)).await;
    assert_eq!(code, 1);
    assert!(said.contains("listen.address") && said.contains(&upstream.address.to_string()));
}

async fn is_ready(gateway: &Gateway) {
    let ready = async { while gateway.ask_admin("/readyz").await.status != 200 {} };
    soon("the gateway to be ready", ready).await;
}

#[tokio::test]
async fn while_the_disk_is_full_keyed_requests_are_refused_and_nothing_is_forwarded() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable().ledger("timeout: 1s");
    let (gateway, home) = Gateway::start(&config).await;
    let first = gateway.ask(&post("before")).await;
    assert_eq!(first.status, 201);
    gateway.limit_files(Some(0));

    for _ in 0..3 {
        let refused = gateway.ask(&post("k")).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "ledger-unavailable"));
        assert_eq!(refused.json()["outcome"], "not_sent");
        assert_eq!(refused.header("retry-after"), Some("2"));
    }
    assert_eq!(upstream.count(), 1);
    let ready = gateway.ask_admin("/readyz").await;
    assert_eq!(ready.status, 503);
    let why = String::from_utf8(ready.body).unwrap();
    assert!(why.starts_with("not ready: ") && why.len() > 20, "{why}");
    assert_eq!(gateway.ask_admin("/readyz?exclude=ledger").await.status, 200);
    assert_eq!(gateway.ask_admin("/livez").await.status, 200);
    // What needs no writing goes on.
    assert_eq!(gateway.ask(&get("/elsewhere")).await.status, 201);
    assert_eq!(gateway.ask(&post("before")).await.lasting(), first.lasting());

    gateway.limit_files(None);
    is_ready(&gateway).await;
    let retry = gateway.ask(&post("k")).await;
    assert_eq!((retry.status, retry.is_replay()), (201, false));
    assert_eq!(upstream.executions("k"), 1);
    gateway.kill();
    let gateway = home.start(&config).await;
    assert!(gateway.ask(&post("k")).await.is_replay());
    assert!(gateway.ask(&post("before")).await.is_replay());
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_is_not_given_and_nothing_runs_again() {
    let upstream = Upstream::holding();
    let config =
        Config::to(upstream.address).durable().ledger("timeout: 1s").rules("in_progress: reject");
    let (gateway, home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    gateway.limit_files(Some(0));
    upstream.go();

    let told = client.answer().await;

    assert_eq!((told.status, told.code().as_str()), (503, "answer-not-stored"));
    assert_eq!(told.json()["outcome"], "unknown");
    assert_eq!(told.header("retry-after"), Some("2"));
    let during = gateway.ask(&post("k")).await;
    assert!(["in-progress", "ledger-unavailable"].contains(&during.code().as_str()), "{during:?}");
    gateway.limit_files(None);
    is_ready(&gateway).await;
    // Kept in memory until now, the answer is stored after all.
    let stored = async {
        loop {
            let retry = gateway.ask(&post("k")).await;
            match retry.status {
                409 if retry.code() == "in-progress" => {}
                503 => {}
                _ => return retry,
            }
        }
    };
    let retry = soon("the key's end", stored).await;
    assert!(retry.is_replay(), "{retry:?}");
    assert_eq!(upstream.count(), 1);
    gateway.kill();
    let gateway = home.start(&config).await;
    assert_eq!(gateway.ask(&post("k")).await.lasting(), retry.lasting());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn an_answer_that_was_never_stored_is_unknown_after_a_kill() {
    let upstream = Upstream::holding();
    let config = Config::to(upstream.address).durable().ledger("timeout: 1s");
    let (gateway, home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    gateway.limit_files(Some(0));
    upstream.go();
    assert_eq!(client.answer().await.code(), "answer-not-stored");
    gateway.kill();
    let gateway = home.start(&config).await;
    assert_eq!(gateway.ask(&post("k")).await.code(), "outcome-unknown");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn after_its_retention_a_key_is_new() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable().rules("retention: { completed: 1s }");
    let (gateway, _home) = Gateway::start(&config).await;
    gateway.ask(&post("k")).await;
    let again = async { while gateway.ask(&post("k")).await.is_replay() {} };
    soon("the end of the retention", again).await;
    assert_eq!(upstream.count(), 2);
    assert_eq!(upstream.last().header("idempotency-attempt"), Some("1"));
}

#[tokio::test]
async fn a_key_with_an_unknown_outcome_is_new_after_the_retention_of_that() {
    let upstream = Upstream::always(vec![Step::Close]);
    let config =
        Config::to(upstream.address).durable().rules("retention: { completed: 10h, unknown: 1s }");
    let (gateway, _home) = Gateway::start(&config).await;
    gateway.ask(&post("k")).await;
    upstream.now(|_| answer("201 Created", "", "done"));
    let again = async { while gateway.ask(&post("k")).await.status == 409 {} };
    soon("the end of the retention", again).await;
    assert!(gateway.ask(&post("k")).await.is_replay());
    assert_eq!(upstream.count(), 2);
    assert_eq!(upstream.last().header("idempotency-attempt"), Some("1"));
}

#[tokio::test]
async fn keys_are_found_again_with_the_same_secret_and_not_with_another() {
    let upstream = Upstream::start();
    let secret = |byte: &str| format!("key_secret: '{}'", byte.repeat(32));
    let config = |byte| Config::to(upstream.address).durable().top(&secret(byte));
    let (gateway, home) = Gateway::start(&config("a")).await;
    gateway.ask(&post("k")).await;
    gateway.kill();
    let gateway = home.start(&config("a")).await;
    assert!(gateway.ask(&post("k")).await.is_replay());
    assert_eq!(gateway.ask(&post("k").body("amount=6")).await.code(), "key-reused");
    gateway.kill();
    let gateway = home.start(&config("b")).await;
    assert!(!gateway.ask(&post("k")).await.is_replay());
    assert_eq!(upstream.count(), 2);
    let file = std::fs::read(home.ledger()).unwrap();
    let holds = |text: &[u8]| file.windows(text.len()).any(|window| window == text);
    assert!(!holds(b"alice-secret"), "a scope's value is in the file");
}

#[tokio::test]
async fn a_gateway_whose_disk_is_full_stops_when_it_is_told_to() {
    let upstream = Upstream::holding();
    let config =
        Config::to(upstream.address).durable().ledger("timeout: 1s").top("drain_timeout: 500ms");
    let (gateway, home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    gateway.limit_files(Some(0));
    upstream.go();
    assert_eq!(client.answer().await.code(), "answer-not-stored");
    drop(client);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.exit_code().await, 0);

    let gateway = home.start(&config).await;

    assert_eq!(gateway.ask(&post("k")).await.code(), "outcome-unknown");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_second_gateway_cannot_take_the_address_of_the_first() {
    // Both would get some of the requests, and neither would know the other's keys.
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).text("");
    let first = Home::new();
    let gateway = first.start_with(&config).await;
    for (field, taken) in [("listen.address", gateway.address), ("admin.address", gateway.admin)] {
        let is_admin = field == "admin.address";
        let place = if is_admin {
            "admin: { address: '127.0.0.1:0'"
        } else {
            "listen: { address: '127.0.0.1:0'"
        };
        let second = config.replace(place, &place.replace("127.0.0.1:0", &taken.to_string()));
        let (code, said) = Home::new().fail_with(&second).await;
        assert_eq!(code, 1, "{field}: {said}");
        assert!(said.contains(field) && said.contains(&taken.to_string()), "{said}");
    }
}
