//! What a person sees with curl: the scripts of this folder and the demo's own tour, against a demo
//! of their own.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may panic")]

mod demo;
mod tour;

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use tokio::{process::Command, task::JoinSet, time::timeout};

use self::demo::Demo;

/// Far longer than any script takes; a hang fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a shell printed, and the code that it ended with.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    printed: String,
}

/// Runs bash with these arguments.
async fn bash(arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    let mut command = Command::new("bash");
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    // Settings of the person at the terminal are not for this test.
    for name in ["API_KEY", "BODY", "OTHER_BODY", "CHARGES_PATH", "SCOPE_HEADER", "HANG_UP_AFTER"] {
        command.env_remove(name);
    }
    let output = command.envs(environment.iter().copied()).output();
    let Ok(output) = timeout(PATIENCE, output).await else { panic!("{arguments:?} hangs") };
    let output = output.unwrap_or_else(|error| panic!("the smoke tests need bash: {error}"));
    let printed = [output.stdout, output.stderr].concat();
    Ran { code: output.status.code(), printed: String::from_utf8_lossy(&printed).into_owned() }
}

fn scripts() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/smoke");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "sh"))
        .filter(|path| path.file_name().is_some_and(|name| name != "lib.sh"))
        .collect()
}

#[tokio::test]
async fn every_script_passes_against_the_demo() {
    let scripts = scripts();
    assert!(scripts.len() >= 7, "the scripts are not where they were: {scripts:?}");
    let mut running = JoinSet::new();
    for script in scripts {
        running.spawn(async move {
            let demo = Demo::start().await;
            let base_url = format!("http://{}", demo.gateway);
            let script = script.to_str().unwrap();
            let ran = bash(&[script], &[("BASE_URL", &base_url)]).await;
            assert_eq!(ran.code, Some(0), "{script} says\n{}", ran.printed);
            assert!(ran.printed.contains("ok "), "{script} checked nothing:\n{}", ran.printed);
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test]
async fn a_script_that_finds_no_gateway_fails_and_says_so() {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/smoke/replay.sh");
    // Port 1 of this machine: nobody listens there.
    let ran = bash(&[script.to_str().unwrap()], &[("BASE_URL", "http://127.0.0.1:1")]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.printed);
    assert!(ran.printed.contains("FAIL  no answer from http://127.0.0.1:1"), "{}", ran.printed);
}
