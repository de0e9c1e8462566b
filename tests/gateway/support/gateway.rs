//! The real binary as a child: started, signalled, ended, and its log read as data.

use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;

use super::{Answer, Config, Request, ask, get, soon};

/// A folder that outlives its gateways: the configuration file and the ledger's file.
pub(crate) struct Home(TempDir);

/// A running gateway; it is killed and reaped when dropped, also by a test that panics.
pub(crate) struct Gateway {
    child: Child,
    log: Log,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

/// What a process has written to stderr.
#[derive(Clone)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    /// How many lines there are; closed when the process has no more to say.
    count: watch::Receiver<usize>,
}

const BINARY: &str = env!("CARGO_BIN_EXE_oncegate");

/// Runs a command of the binary to its end.
pub(crate) async fn run(arguments: &[&str]) -> Output {
    run_with(arguments, &[], "").await
}

/// The same with more in its environment and `input` on its standard input.
pub(crate) async fn run_with(
    arguments: &[&str],
    environment: &[(&str, &str)],
    input: &str,
) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let input = input.to_owned();
    let ended = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn()?;
        // A command that reads nothing may be over before this is written.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output()
    });
    soon("the end of a command", ended).await.unwrap().unwrap()
}

// === impl Home ===

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path().join("ledger.redb")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path().join("oncegate.yaml")
    }

    /// Writes the file without starting anything.
    pub(crate) fn write(&self, config: &Config) {
        std::fs::write(self.file(), config.text(self.ledger().to_str().unwrap())).unwrap();
    }

    pub(crate) async fn start(&self, config: &Config) -> Gateway {
        self.start_with(&config.text(self.ledger().to_str().unwrap())).await
    }

    /// With a file of these words.
    pub(crate) async fn start_with(&self, text: &str) -> Gateway {
        self.start_under(text, &[]).await
    }

    /// The same with more in its environment.
    pub(crate) async fn start_under(
        &self,
        text: &str,
        environment: &[(&'static str, String)],
    ) -> Gateway {
        std::fs::write(self.file(), text).unwrap();
        let mut gateway = self.spawn(environment);
        let started = gateway.logged("gateway started").await;
        let address = |field: &str| started[field].as_str().unwrap().parse().unwrap();
        (gateway.address, gateway.admin) = (address("address"), address("admin"));
        gateway
    }

    /// Runs a gateway that must not start: its exit code and what it said.
    pub(crate) async fn fail(&self, config: &Config) -> (i32, String) {
        self.fail_with(&config.text(self.ledger().to_str().unwrap())).await
    }

    /// The same with a file of these words.
    pub(crate) async fn fail_with(&self, text: &str) -> (i32, String) {
        std::fs::write(self.file(), text).unwrap();
        let gateway = self.spawn(&[]);
        let log = gateway.log.clone();
        let code = gateway.exit_code().await;
        (code, log.text())
    }

    fn spawn(&self, environment: &[(&'static str, String)]) -> Gateway {
        // A full disk is played by a limit on the size of files, whose signal must not kill.
        let mut child = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", BINARY, "serve", "--config"])
            .arg(self.file())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        let nowhere = SocketAddr::from(([0; 4], 0));
        Gateway { child, log: Log::of(stderr), address: nowhere, admin: nowhere }
    }
}

// === impl Gateway ===

impl Gateway {
    /// A gateway in a home of its own.
    pub(crate) async fn start(config: &Config) -> (Self, Home) {
        let home = Home::new();
        (home.start(config).await, home)
    }

    pub(crate) async fn ask(&self, request: &Request) -> Answer {
        ask(self.address, request).await
    }

    pub(crate) async fn ask_admin(&self, target: &str) -> Answer {
        ask(self.admin, &get(target)).await
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// `kill -9`, until it is gone.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Waits for its own end.
    pub(crate) async fn exit_code(mut self) -> i32 {
        let mut count = self.log.count.clone();
        soon("the end of the gateway", async { while count.changed().await.is_ok() {} }).await;
        self.child.wait().unwrap().code().expect("it ended by itself")
    }

    /// Files cannot grow beyond `bytes`, or can again.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Fsize, limit).unwrap();
    }

    /// The first event with this message.
    pub(crate) async fn logged(&self, message: &str) -> Value {
        self.logged_where(message, |event| event["message"] == message).await
    }

    pub(crate) async fn logged_where(
        &self,
        what: &str,
        is_meant: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut count = self.log.count.clone();
        let found = async {
            loop {
                let ended = count.has_changed().is_err();
                if let Some(event) = self.log.events().into_iter().find(&is_meant) {
                    return Ok(event);
                }
                if ended {
                    return Err(self.log.text());
                }
                // An error is the end, which the next round sees.
                count.changed().await.ok();
            }
        };
        soon(what, found).await.unwrap_or_else(|log| panic!("{what} is not in the log:\n{log}"))
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.log.events()
    }

    pub(crate) fn log_text(&self) -> String {
        self.log.text()
    }

    /// The value of the series of `name` that has all these labels; 0 if there is none.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = String::from_utf8(self.ask_admin("/metrics").await.body).unwrap();
        let labels: Vec<_> = labels.iter().map(|(name, is)| format!("{name}=\"{is}\"")).collect();
        let series = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        series.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Until the metric has this value.
    pub(crate) async fn metric_is(&self, name: &str, labels: &[(&str, &str)], value: f64) {
        let reached =
            async { while (self.metric(name, labels).await - value).abs() > f64::EPSILON {} };
        soon(&format!("{name} {labels:?} at {value}"), reached).await;
    }

    /// Until this many requests have ended so.
    pub(crate) async fn counted(&self, outcome: &str, count: u32) {
        let labels = [("outcome", outcome)];
        self.metric_is("oncegate_requests_total", &labels, f64::from(count)).await;
    }

    /// Until this many requests wait for another one with their key.
    pub(crate) async fn waiters(&self, count: u32) {
        self.metric_is("oncegate_waiters", &[], f64::from(count)).await;
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail for a process that has ended and was waited for.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

// === impl Log ===

impl Log {
    fn of(stderr: impl std::io::Read + Send + 'static) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (sender, count) = watch::channel(0);
        let log = Self { lines: Arc::clone(&lines), count };
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line);
                sender.send_modify(|count| *count += 1);
            }
        });
        log
    }

    fn text(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    /// The lines that are events.
    fn events(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}
