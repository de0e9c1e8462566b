//! The servers: their faults and their counters as calls.

use std::{collections::HashMap, net::SocketAddr, path::Path, process::Command};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use crate::shared::soon;

/// The tests of this process share one ensemble; one that breaks it has it alone.
static TURN: RwLock<()> = RwLock::const_new(());

/// The ensemble for the length of a test.
#[derive(Debug)]
pub(crate) struct Ensemble {
    turn: Turn,
    servers: Vec<SocketAddr>,
}

#[derive(Debug)]
enum Turn {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

/// Which servers a command is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    All,
    Number(usize),
}

const SCRIPT: &str = "tests/ensemble.sh";

fn control(arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT);
    let output = Command::new(script).args(arguments).output().unwrap();
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

    fn of(turn: Turn) -> Self {
        let servers = std::env::var("ONCEGATE_TEST_ZK").unwrap_or_else(|_| {
            panic!(
                "these tests need a ZooKeeper ensemble: run them with tests/run.sh, or start one \
                 with {SCRIPT} and set ONCEGATE_TEST_ZK to what `{SCRIPT} servers` prints"
            )
        });
        let servers = servers.split(',').map(|server| server.parse().unwrap()).collect();
        Self { turn, servers }
    }

    pub(crate) fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    async fn control(&self, command: &'static str, which: Which) {
        assert!(matches!(self.turn, Turn::Alone { .. }), "{command} needs the ensemble alone");
        let which = match which {
            Which::All => "all".to_owned(),
            Which::Number(number) => number.to_string(),
        };
        let done = tokio::task::spawn_blocking(move || control(&[command, &which]));
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

    /// The number of the server that leads.
    pub(crate) async fn leader(&self) -> Which {
        let number = tokio::task::spawn_blocking(|| control(&["leader"]));
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
        if let Turn::Alone { .. } = self.turn {
            // The guard is let go after this.
            control(&["heal"]);
        }
    }
}

/// All counters of one server.
async fn mntr(server: SocketAddr) -> HashMap<String, String> {
    let asked = async {
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(b"mntr").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    let text = soon("a server's counters", asked).await;
    let pairs = text.lines().filter_map(|line| line.split_once('\t'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
