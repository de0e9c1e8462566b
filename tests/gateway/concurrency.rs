//! Duplicates that come at once, and clients that leave at every moment.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, task::JoinSet};

use crate::support::{Client, Config, Gateway, Home, Step, Upstream, answer, ask, post, soon};

async fn start(upstream: &Upstream) -> (Gateway, Home) {
    Gateway::start(&Config::to(upstream.address)).await
}

// R25, R29, R33
#[tokio::test]
async fn of_a_hundred_duplicates_one_runs_and_all_get_its_answer() {
    for durability in ["memory", "fsync"] {
        let upstream = Upstream::holding().await;
        let mut config = Config::to(upstream.address);
        config.durability = durability;
        let (gateway, _home) = Gateway::start(&config).await;
        let address = gateway.address;
        let mut duplicates = JoinSet::new();
        for _ in 0..100 {
            duplicates.spawn(async move { ask(address, &post("k")).await });
        }
        gateway.waiters(99).await;
        upstream.go();

        let answers = soon("all answers", duplicates.join_all()).await;

        assert_eq!(upstream.count(), 1);
        assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
        for answer in &answers {
            assert_eq!(answer.lasting(), answers[0].lasting());
        }
        gateway.counted("executed", 1).await;
        gateway.counted("joined", 99).await;
    }
}

#[tokio::test]
async fn a_hundred_different_keys_run_a_hundred_times() {
    let upstream = Upstream::start().await;
    let config = Config::to(upstream.address).durable();
    let (gateway, _home) = Gateway::start(&config).await;
    let address = gateway.address;
    let mut requests = JoinSet::new();
    for number in 0..100 {
        requests.spawn(async move { ask(address, &post(&format!("k-{number}"))).await });
    }
    let answers = soon("all answers", requests.join_all()).await;
    assert!(answers.iter().all(|answer| answer.status == 201 && !answer.is_replay()));
    assert_eq!(upstream.count(), 100);
}

// R36, R37
#[tokio::test]
async fn a_client_that_leaves_while_the_upstream_works_gets_the_answer_on_its_retry() {
    let upstream = Upstream::holding().await;
    let (gateway, _home) = start(&upstream).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    upstream.received(1).await;
    drop(client);
    upstream.go();

    let retry = gateway.ask(&post("k")).await;

    assert_eq!((retry.status, retry.is_replay()), (201, true));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_client_that_closes_its_side_only_still_gets_its_answer() {
    let upstream = Upstream::holding().await;
    let (gateway, _home) = start(&upstream).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    client.stream.shutdown().await.unwrap();
    upstream.received(1).await;
    upstream.go();
    assert_eq!(client.answer().await.status, 201);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_client_that_leaves_within_its_head_or_body_has_sent_nothing() {
    let upstream = Upstream::start().await;
    let (gateway, _home) = start(&upstream).await;
    let whole = post("k").bytes();
    for sent in [1, 20, whole.len() / 2, whole.len() - 1] {
        let mut client = Client::connect(gateway.address).await;
        client.send_bytes(&whole[..sent]).await;
        drop(client);
        gateway.metric_is("oncegate_connections", &[], 0.0).await;
    }
    assert_eq!(upstream.count(), 0);

    let retry = gateway.ask(&post("k")).await;

    assert_eq!((retry.status, retry.is_replay()), (201, false));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_disturbs_nobody() {
    let upstream = Upstream::holding().await;
    let (gateway, _home) = start(&upstream).await;
    let mut leader = Client::connect(gateway.address).await;
    leader.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiters = Vec::new();
    for _ in 0..2 {
        let mut waiter = Client::connect(gateway.address).await;
        waiter.send(&post("k")).await;
        waiters.push(waiter);
    }
    gateway.waiters(2).await;
    drop(waiters.pop());
    upstream.go();

    let first = leader.answer().await;

    assert!(!first.is_replay());
    assert_eq!(waiters[0].answer().await.lasting(), first.lasting());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn the_waiters_are_answered_though_the_first_client_left() {
    let upstream = Upstream::holding().await;
    let (gateway, _home) = start(&upstream).await;
    let mut leader = Client::connect(gateway.address).await;
    leader.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiter = Client::connect(gateway.address).await;
    waiter.send(&post("k")).await;
    gateway.waiters(1).await;
    drop(leader);
    upstream.go();

    let joined = waiter.answer().await;

    assert_eq!((joined.status, joined.is_replay()), (201, true));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_within_its_answer_gets_all_of_it_on_its_retry() {
    let large = "x".repeat(8 * 1024 * 1024);
    let upstream = Upstream::always(answer("200 OK", "", &large)).await;
    let config = Config::to(upstream.address).rules("max_stored_body: 16MiB");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    client.head().await.unwrap();
    // With bytes unread, which resets the connection.
    drop(client);

    let retry = gateway.ask(&post("k")).await;

    assert!(retry.is_replay());
    assert_eq!(retry.body, large.as_bytes());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_large_answer_is_marked_as_given_though_its_client_left() {
    let large = "x".repeat(8 * 1024 * 1024);
    let upstream = Upstream::always(answer("200 OK", "", &large)).await;
    let (gateway, _home) = start(&upstream).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(&post("k")).await;
    client.head().await.unwrap();
    drop(client);
    assert_eq!(gateway.ask(&post("k")).await.code(), "not-replayable");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn joined_requests_are_told_how_an_execution_without_an_answer_ended() {
    for (script, status, code) in [
        (vec![Step::Wait, Step::Close], 502, "upstream-interrupted"),
        (vec![Step::Wait, Step::Write(b"nonsense\r\n\r\n".to_vec())], 502, "upstream-interrupted"),
    ] {
        let upstream = Upstream::always(script).await;
        let (gateway, _home) = start(&upstream).await;
        let mut clients = Vec::new();
        for waiting in 0..3 {
            let mut client = Client::connect(gateway.address).await;
            client.send(&post("k")).await;
            upstream.received(1).await;
            gateway.waiters(waiting).await;
            clients.push(client);
        }
        upstream.go();
        for client in &mut clients {
            let told = client.answer().await;
            assert_eq!((told.status, told.code().as_str()), (status, code));
            assert_eq!(told.json()["outcome"], "unknown");
        }
        assert_eq!(upstream.count(), 1);
    }
}

#[tokio::test]
async fn joined_requests_get_an_answer_that_frees_the_key_and_the_next_one_runs() {
    let mut busy = vec![Step::Wait];
    busy.extend(answer("429 Too Many Requests", "X-Part: 1\r\n", "busy"));
    let upstream = Upstream::always(busy).await;
    let (gateway, _home) = start(&upstream).await;
    let mut leader = Client::connect(gateway.address).await;
    leader.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiter = Client::connect(gateway.address).await;
    waiter.send(&post("k")).await;
    gateway.waiters(1).await;
    upstream.go();
    for client in [&mut leader, &mut waiter] {
        let told = client.answer().await;
        assert_eq!(
            (told.status, &*told.body, told.header("x-part")),
            (429, &b"busy"[..], Some("1"))
        );
        assert!(!told.is_replay());
    }
    assert_eq!(upstream.count(), 1);

    upstream.now(|_| answer("200 OK", "", "done"));
    let retry = gateway.ask(&post("k")).await;

    assert_eq!((retry.status, retry.is_replay(), upstream.count()), (200, false, 2));
}

#[tokio::test]
async fn a_waiter_is_answered_as_soon_as_the_first_is() {
    let upstream = Upstream::holding().await;
    let config = Config::to(upstream.address).rules("in_progress: { wait: 60s }");
    let (gateway, _home) = Gateway::start(&config).await;
    let mut leader = Client::connect(gateway.address).await;
    leader.send(&post("k")).await;
    upstream.received(1).await;
    let mut waiter = Client::connect(gateway.address).await;
    waiter.send(&post("k")).await;
    gateway.waiters(1).await;
    upstream.go();
    leader.answer().await;
    // Far below any period of polling that would be bearable.
    let answered = tokio::time::timeout(Duration::from_secs(5), waiter.answer()).await;
    assert!(answered.unwrap().is_replay());
}
