//! The commands and their exit codes, which scripts rely on.

use crate::support::{Config, Gateway, Home, Upstream, run};

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
    let upstream = Upstream::start().await;
    let config = Config::to(upstream.address).durable().ledger("timeout: 100ms");
    let (gateway, _home) = Gateway::start(&config).await;
    let url = format!("http://{}", gateway.admin);
    assert_eq!(run(&["health", "--admin", &url]).await.status.code(), Some(0));
    gateway.limit_files(Some(0));
    assert_eq!(gateway.ask(&crate::support::post("k")).await.status, 503);
    let unready = run(&["health", "--admin", &url]).await;
    assert_eq!(unready.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unready.stderr).contains("not ready"), "{unready:?}");
    gateway.kill();
    assert_eq!(run(&["health", "--admin", &url]).await.status.code(), Some(1));
}
