//! The commands and their exit codes, which scripts rely on.

use crate::support::{Config, Gateway, Home, Refusing, Upstream, post, run};

#[tokio::test]
async fn check_passes_a_file_that_can_be_used_and_warns() {
    let home = Home::new();
    home.write(&Config::to(([127, 0, 0, 1], 9000).into()));
    let checked = run(&["check", "--config", home.file().to_str().unwrap()]).await;
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(said.contains("warning") && said.contains("durability"), "{said}");
}

#[tokio::test]
async fn check_prints_every_mistake_with_its_place_and_so_does_serve() {
    let home = Home::new();
    let config = Config::to(([127, 0, 0, 1], 9000).into())
        .limits("max_in_flight: none, buffered_bodies: 1")
        .rules("retention: { completed: 0s }, unknown_key: 1");
    home.write(&config);
    let file = home.file();
    for (command, exit) in [("check", 2), ("serve", 2)] {
        let ended = run(&[command, "--config", file.to_str().unwrap()]).await;
        assert_eq!(ended.status.code(), Some(exit), "{ended:?}");
        let said = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
        for field in ["max_in_flight", "buffered_bodies", "completed", "unknown_key"] {
            let place = format!("{}:", file.display());
            let line = said.lines().find(|line| line.starts_with(&place) && line.contains(field));
            assert!(line.is_some(), "{field}: {said}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_missing_and_words_that_are_wrong_are_usage_errors() {
    for arguments in [
        &["check", "--config", "/nowhere/oncegate.yaml"][..],
        &["serve", "--config", "/nowhere/oncegate.yaml"],
        &["serve"],
        &["nonsense"],
        &[],
    ] {
        let ended = run(arguments).await;
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {ended:?}");
    }
    assert_eq!(run(&["--version"]).await.status.code(), Some(0));
    assert_eq!(run(&["--help"]).await.status.code(), Some(0));
}

#[tokio::test]
async fn schema_is_json() {
    let printed = run(&["schema"]).await;
    assert_eq!(printed.status.code(), Some(0));
    let schema: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert!(schema["$schema"].as_str().unwrap().contains("json-schema.org"));
}

#[tokio::test]
async fn health_tells_by_its_exit_code_whether_the_gateway_is_ready() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable().ledger("timeout: 100ms");
    let (gateway, _home) = Gateway::start(&config).await;
    let url = format!("http://{}", gateway.admin);
    assert_eq!(run(&["health", "--admin", &url]).await.status.code(), Some(0));
    gateway.limit_files(Some(0));
    assert_eq!(gateway.ask(&post("k")).await.status, 503);
    let unready = run(&["health", "--admin", &url]).await;
    assert_eq!(unready.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unready.stderr).contains("not ready"), "{unready:?}");
    gateway.kill();
    assert_eq!(run(&["health", "--admin", &url]).await.status.code(), Some(1));
}

/// What the doctor says of this file, and its exit code.
async fn examined(home: &Home) -> (Option<i32>, String) {
    let ended = run(&["doctor", "--config", home.file().to_str().unwrap()]).await;
    let said = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
    (ended.status.code(), said)
}

#[tokio::test]
async fn the_doctor_tells_of_a_file_that_a_gateway_has_and_of_the_upstreams() {
    let upstream = Upstream::start();
    let config = Config::to(upstream.address).durable();
    let home = Home::new();
    home.write(&config);
    let (code, said) = examined(&home).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("not there yet") && !home.ledger().exists(), "{said}");

    let gateway = home.start(&config).await;
    let (code, said) = examined(&home).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("held by a running process"), "{said}");
    let line = said.lines().find(|line| line.contains("upstream")).unwrap();
    assert!(line.starts_with("ok ") && line.contains(&upstream.address.to_string()), "{said}");
    assert_eq!(gateway.ask(&post("k")).await.status, 201);

    gateway.kill();
    let (code, said) = examined(&home).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("not closed in good order"), "{said}");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn the_doctor_fails_without_an_upstream_and_refuses_a_file_with_mistakes() {
    let nobody = Refusing::new();
    let home = Home::new();
    home.write(&Config::to(nobody.address));
    let (code, said) = examined(&home).await;
    assert_eq!(code, Some(1), "{said}");
    let line = said.lines().find(|line| line.starts_with("FAIL")).unwrap();
    assert!(line.contains(&nobody.address.to_string()) && line.contains("does it run"), "{said}");

    home.write(&Config::to(nobody.address).limits("max_in_flight: none"));
    let (code, said) = examined(&home).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("max_in_flight"), "{said}");
}
