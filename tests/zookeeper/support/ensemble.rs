//! The servers: their faults and their counters as calls.

use std::{collections::HashMap, net::SocketAddr, path::Path, process::Command};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use super::Wires;
use crate::shared::soon;

/// The tests of this process share one ensemble; one that breaks it has it alone.
static TURN: RwLock<()> = RwLock::const_new(());

/// The ensemble for the length of a test.
#[derive(Debug)]
pub(crate) struct Ensemble {
    turn: Turn,
    servers: Vec<SocketAddr>,
    /// What the script is told beside its arguments.
    environment: Vec<(&'static str, String)>,
}

#[derive(Debug)]
enum Turn {
    Shared {
        _guard: RwLockReadGuard<'static, ()>,
    },
    Alone {
        _guard: RwLockWriteGuard<'static, ()>,
    },
    /// Servers that only this test has, in a folder that ends with it.
    Own {
        _folder: TempDir,
        _guard: MutexGuard<'static, ()>,
    },
}

/// Which servers a command is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    All,
    Number(usize),
}

const SCRIPT: &str = "tests/ensemble.sh";

/// One test at a time has servers of its own.
static OWN: Mutex<()> = Mutex::const_new(());

/// Above the ports of the shared ensemble.
fn own_port() -> u16 {
    let port = std::env::var("ONCEGATE_ZK_PORT").map_or(22180, |port| port.parse().unwrap());
    port + 50
}

fn control(arguments: &[&str], environment: &[(&'static str, String)]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT);
    let environment = environment.iter().map(|(name, value)| (name, value));
    let output = Command::new(script).args(arguments).envs(environment).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{SCRIPT} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

// === impl Ensemble ===

impl Ensemble {
    /// Beside other tests: nothing happens to the servers.
    pub(crate) async fn shared() -> Self {
        Self::of(Turn::Shared { _guard: TURN.read().await })
    }

    /// While no other test runs: what is done to the servers is undone at the end.
    pub(crate) async fn alone() -> Self {
        Self::of(Turn::Alone { _guard: TURN.write().await })
    }

    /// Three more servers. Server I reaches server J for their quorum through `wires[I][J]`.
    pub(crate) async fn own() -> (Self, Wires) {
        Self::own_with("").await
    }

    /// The same with these options of the Java machine.
    pub(crate) async fn own_with(options: &str) -> (Self, Wires) {
        let guard = OWN.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let port = own_port();
        let wires = Wires::between(port + 10).await;
        let environment = vec![
            ("ONCEGATE_ZK_DIR", folder.path().to_str().unwrap().to_owned()),
            ("ONCEGATE_ZK_PORT", port.to_string()),
            ("ONCEGATE_ZK_VIA", wires.described()),
            ("JAVA_TOOL_OPTIONS", options.to_owned()),
        ];
        let servers =
            (1..=3).map(|number| SocketAddr::from(([127, 0, 0, 1], port + number))).collect();
        let turn = Turn::Own { _folder: folder, _guard: guard };
        let ensemble = Self { turn, servers, environment };
        ensemble.begin().await;
        (ensemble, wires)
    }

    /// One more server, which speaks TLS at its address. It shows the key and certificate of one
    /// file to clients whose certificates the other file has signed, both of them PEM.
    pub(crate) async fn secure(key_store: &Path, trust_store: &Path) -> Self {
        let guard = OWN.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let port = own_port();
        let secure = SocketAddr::from(([127, 0, 0, 1], port + 5));
        let lines = format!(
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             secureClientPort={}\nsecureClientPortAddress=127.0.0.1\n\
             ssl.keyStore.type=PEM\nssl.keyStore.location={}\n\
             ssl.trustStore.type=PEM\nssl.trustStore.location={}\nssl.clientAuth=need",
            secure.port(),
            key_store.display(),
            trust_store.display()
        );
        let environment = vec![
            ("ONCEGATE_ZK_DIR", folder.path().to_str().unwrap().to_owned()),
            ("ONCEGATE_ZK_PORT", port.to_string()),
            ("ONCEGATE_ZK_SERVERS", "1".to_owned()),
            ("ONCEGATE_ZK_CONFIG", lines),
        ];
        let turn = Turn::Own { _folder: folder, _guard: guard };
        let ensemble = Self { turn, servers: vec![secure], environment };
        ensemble.begin().await;
        ensemble
    }

    /// Where the server of [`secure`](Self::secure) speaks plainly.
    pub(crate) fn plain() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], own_port() + 1))
    }

    /// The script's own patience ends it.
    async fn begin(&self) {
        let environment = self.environment.clone();
        let started = tokio::task::spawn_blocking(move || control(&["start"], &environment));
        started.await.unwrap();
    }

    fn of(turn: Turn) -> Self {
        let servers = std::env::var("ONCEGATE_TEST_ZK").unwrap_or_else(|_| {
            panic!(
                "these tests need a ZooKeeper ensemble: run them with tests/run.sh, or start one \
                 with {SCRIPT} and set ONCEGATE_TEST_ZK to what `{SCRIPT} servers` prints"
            )
        });
        let servers = servers.split(',').map(|server| server.parse().unwrap()).collect();
        Self { turn, servers, environment: Vec::new() }
    }

    pub(crate) fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    async fn control(&self, command: &'static str, which: Which) {
        assert!(!matches!(self.turn, Turn::Shared { .. }), "{command} needs the ensemble alone");
        let environment = self.environment.clone();
        let which = match which {
            Which::All => "all".to_owned(),
            Which::Number(number) => number.to_string(),
        };
        let done = tokio::task::spawn_blocking(move || control(&[command, &which], &environment));
        soon(command, done).await.unwrap();
    }

    /// `kill -9`, until it is gone.
    pub(crate) async fn kill(&self, which: Which) {
        self.control("kill", which).await;
    }

    pub(crate) async fn pause(&self, which: Which) {
        self.control("pause", which).await;
    }

    pub(crate) async fn resume(&self, which: Which) {
        self.control("resume", which).await;
    }

    /// Until it serves.
    pub(crate) async fn restart(&self, which: Which) {
        self.control("restart", which).await;
    }

    /// Resumes and starts whatever a fault has left, until all serve.
    pub(crate) async fn heal(&self) {
        let environment = self.environment.clone();
        let healed = tokio::task::spawn_blocking(move || control(&["heal"], &environment));
        soon("all servers", healed).await.unwrap();
    }

    /// The number of the server that leads.
    pub(crate) async fn leader(&self) -> Which {
        let number = tokio::task::spawn_blocking({
            let environment = self.environment.clone();
            move || control(&["leader"], &environment)
        });
        let number = soon("the leader's number", number).await.unwrap();
        Which::Number(number.trim().parse().unwrap())
    }

    /// A counter, over all servers.
    pub(crate) async fn sum(&self, counter: &str) -> i64 {
        let mut sum = 0;
        for server in &self.servers {
            let counters = mntr(*server).await;
            sum += counters[counter].parse::<i64>().unwrap();
        }
        sum
    }

    /// Until someone watches this node.
    pub(crate) async fn watched(&self, path: &str) {
        let watched = async {
            loop {
                for server in &self.servers {
                    if word(*server, "wchp").await.lines().any(|line| line == path) {
                        return;
                    }
                }
            }
        };
        soon("a watch", watched).await;
    }

    /// Until a counter over all servers fulfils a condition.
    pub(crate) async fn sum_is(&self, counter: &str, is_meant: impl Fn(i64) -> bool) -> i64 {
        let reached = async {
            loop {
                let sum = self.sum(counter).await;
                if is_meant(sum) {
                    return sum;
                }
            }
        };
        soon(counter, reached).await
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        // The guard is let go, and the folder deleted, after this.
        match self.turn {
            Turn::Shared { .. } => {}
            Turn::Alone { .. } => drop(control(&["heal"], &[])),
            Turn::Own { .. } => drop(control(&["destroy"], &self.environment)),
        }
    }
}

/// All counters of one server.
async fn mntr(server: SocketAddr) -> HashMap<String, String> {
    let text = word(server, "mntr").await;
    let pairs = text.lines().filter_map(|line| line.split_once('\t'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What a server answers to one of its four-letter words.
pub(crate) async fn word(server: SocketAddr, word: &str) -> String {
    let asked = async {
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(word.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    soon(word, asked).await
}
