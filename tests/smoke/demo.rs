//! `oncegate demo` in a process of its own, on ports that were free.

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// Killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Demo {
    /// `host:port`, as the tour prints it.
    pub(crate) gateway: String,
    /// Everything that it printed.
    pub(crate) tour: String,
    _stdout: BufReader<ChildStdout>,
    _process: Child,
}

/// How long a start may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The last step of the tour, after which nothing more is printed.
const LAST: &str = "/api/v1/keys?state=unknown";

impl Demo {
    pub(crate) async fn start() -> Self {
        let any = "127.0.0.1:0";
        let mut process = Command::new(env!("CARGO_BIN_EXE_oncegate"))
            .args(["demo", "--listen", any, "--api", any, "--admin", any])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut tour = String::new();
        let read = async {
            while !tour.contains(LAST) {
                let read = stdout.read_line(&mut tour).await.unwrap();
                assert_ne!(read, 0, "the demo ended after\n{tour}");
            }
        };
        timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("the demo does not start"));
        let gateway = tour.lines().find_map(|line| {
            line.trim().strip_prefix("gateway").map(|url| url.trim().replace("http://", ""))
        });
        Self { gateway: gateway.unwrap(), tour, _stdout: stdout, _process: process }
    }
}
