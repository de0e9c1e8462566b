//! Starts and kills ledgers over one real ensemble, each test below a root of its own.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;

use crate::{
    domain::Clock,
    ledger::{
        Ledger, Operator,
        suite::{Harness, operator::OperatorHarness},
        zookeeper::{Settings, Sweep, ZooKeeper},
    },
};

/// The servers of the ensemble.
pub(super) fn servers() -> Vec<String> {
    let servers = std::env::var("ONCEGATE_TEST_ZK").unwrap_or_default();
    assert!(
        !servers.is_empty(),
        "ONCEGATE_TEST_ZK names no ensemble (host:port,...): run tests/run.sh, which starts one"
    );
    servers.split(',').map(str::to_owned).collect()
}

pub(super) fn settings(root: &str) -> Settings {
    Settings {
        servers: servers(),
        root: root.to_owned(),
        session_timeout: Duration::from_secs(8),
        tick_time: Duration::from_millis(500),
        sessions: 2,
        tls: None,
        auth: Vec::new(),
        timeout: Duration::from_secs(10),
        gateway: format!("gateway-{}", &Uuid::new_v4().simple().to_string()[..8]).into(),
        clock: Clock::system(),
        sweep: Sweep::default(),
    }
}

pub(super) fn new_root() -> String {
    format!("/test-{}", Uuid::new_v4().simple())
}

pub(super) async fn open(root: &str) -> Arc<ZooKeeper> {
    Arc::new(ZooKeeper::open(settings(root)).await.expect("the ensemble gives a session"))
}

pub(super) struct EnsembleHarness {
    ledger: Arc<ZooKeeper>,
    root: String,
    dead: Vec<Arc<ZooKeeper>>,
}

// === impl EnsembleHarness ===

impl OperatorHarness for EnsembleHarness {
    fn operator(&self) -> Arc<dyn Operator> {
        Arc::clone(&self.ledger) as _
    }
}

impl Harness for EnsembleHarness {
    async fn start() -> Self {
        let root = new_root();
        Self { ledger: open(&root).await, root, dead: Vec::new() }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.ledger) as _
    }

    async fn advance(&self, duration: Duration) {
        // Servers stamp in milliseconds: nothing is written in the one that time passes in.
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.ledger.core.time().pass(duration);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn crash(mut self) -> Self {
        let passed = self.ledger.core.time().passed();
        self.ledger.kill().await;
        let ledger = open(&self.root).await;
        ledger.core.time().set_passed(passed);
        self.dead.push(std::mem::replace(&mut self.ledger, ledger));
        self
    }

    async fn restart(mut self) -> Self {
        let passed = self.ledger.core.time().passed();
        self.ledger.close().await;
        self.ledger = open(&self.root).await;
        self.ledger.core.time().set_passed(passed);
        self
    }
}
