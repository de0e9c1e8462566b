//! Starts and kills embedded ledgers.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;

use super::disk::Disk;
use crate::{
    domain::{Clock, Hands, Timestamp},
    ledger::{
        Ledger, Operator,
        embedded::{Durability, Embedded, Settings, Sweep},
        suite::{Harness, operator::OperatorHarness},
    },
};

pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
pub(super) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

pub(super) fn settings(clock: &Clock, durability: Durability) -> Settings {
    Settings { durability, timeout: TIMEOUT, clock: clock.clone(), sweep: Sweep::default() }
}

pub(super) fn on_disk(disk: &Disk, clock: &Clock) -> Arc<Embedded> {
    let settings = settings(clock, Durability::Memory);
    Arc::new(Embedded::in_file(&settings, disk.opener()).unwrap())
}

pub(super) struct MemoryHarness {
    ledger: Arc<Embedded>,
}

pub(super) struct DelayedHarness {
    ledger: Arc<Embedded>,
}

pub(super) struct FileHarness {
    ledger: Arc<Embedded>,
    folder: TempDir,
    life: u32,
    clock: Clock,
    hands: Hands,
    /// Those that were killed: their process would be gone, here they only stay out of the way.
    dead: Vec<Arc<Embedded>>,
}

pub(super) struct DiskHarness {
    ledger: Arc<Embedded>,
    disk: Disk,
    clock: Clock,
    hands: Hands,
    dead: Vec<Arc<Embedded>>,
}

// === impl MemoryHarness ===

impl Harness for MemoryHarness {
    async fn start() -> Self {
        let settings = settings(&Clock::following_tokio(START), Durability::Memory);
        Self { ledger: Arc::new(Embedded::open(&settings).unwrap()) }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.ledger) as _
    }

    async fn advance(&self, duration: Duration) {
        tokio::time::advance(duration).await;
    }

    fn is_durable(&self) -> bool {
        false
    }

    async fn crash(self) -> Self {
        Self::start().await
    }

    async fn restart(self) -> Self {
        Self::start().await
    }
}

// === impl DelayedHarness ===

impl Harness for DelayedHarness {
    async fn start() -> Self {
        let settings = settings(&Clock::following_tokio(START), Durability::Memory);
        Self { ledger: Arc::new(Embedded::with_latency(&settings, Duration::from_millis(2))) }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.ledger) as _
    }

    async fn advance(&self, duration: Duration) {
        tokio::time::advance(duration).await;
    }

    fn is_durable(&self) -> bool {
        false
    }

    async fn crash(self) -> Self {
        Self::start().await
    }

    async fn restart(self) -> Self {
        Self::start().await
    }
}

// === impl FileHarness ===

impl FileHarness {
    fn file(folder: &TempDir, life: u32, clock: &Clock) -> Arc<Embedded> {
        let path = folder.path().join(format!("life-{life}.redb"));
        Arc::new(Embedded::open(&settings(clock, Durability::Fsync { path })).unwrap())
    }
}

impl Harness for FileHarness {
    async fn start() -> Self {
        let (clock, hands) = Clock::by_hand(START);
        let folder = TempDir::new().unwrap();
        let ledger = Self::file(&folder, 0, &clock);
        Self { ledger, folder, life: 0, clock, hands, dead: Vec::new() }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.ledger) as _
    }

    async fn advance(&self, duration: Duration) {
        self.hands.advance(duration);
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn crash(mut self) -> Self {
        let life = self.life + 1;
        let path = |life| self.folder.path().join(format!("life-{life}.redb"));
        std::fs::copy(path(self.life), path(life)).unwrap();
        let ledger = Self::file(&self.folder, life, &self.clock);
        self.dead.push(std::mem::replace(&mut self.ledger, ledger));
        Self { life, ..self }
    }

    async fn restart(self) -> Self {
        self.ledger.close().await;
        let ledger = Self::file(&self.folder, self.life, &self.clock);
        Self { ledger, ..self }
    }
}

// === impl DiskHarness ===

impl DiskHarness {
    pub(super) fn embedded(&self) -> &Embedded {
        &self.ledger
    }
}

impl Harness for DiskHarness {
    async fn start() -> Self {
        let (clock, hands) = Clock::by_hand(START);
        let disk = Disk::default();
        Self { ledger: on_disk(&disk, &clock), disk, clock, hands, dead: Vec::new() }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.ledger) as _
    }

    async fn advance(&self, duration: Duration) {
        self.hands.advance(duration);
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn crash(mut self) -> Self {
        let disk = self.disk.cut(|| false);
        let ledger = on_disk(&disk, &self.clock);
        self.dead.push(std::mem::replace(&mut self.ledger, ledger));
        Self { disk, ..self }
    }

    async fn restart(self) -> Self {
        self.ledger.close().await;
        let ledger = on_disk(&self.disk, &self.clock);
        Self { ledger, ..self }
    }
}

impl OperatorHarness for MemoryHarness {
    fn operator(&self) -> Arc<dyn Operator> {
        Arc::clone(&self.ledger) as _
    }
}

impl OperatorHarness for DelayedHarness {
    fn operator(&self) -> Arc<dyn Operator> {
        Arc::clone(&self.ledger) as _
    }
}

impl OperatorHarness for FileHarness {
    fn operator(&self) -> Arc<dyn Operator> {
        Arc::clone(&self.ledger) as _
    }
}

impl OperatorHarness for DiskHarness {
    fn operator(&self) -> Arc<dyn Operator> {
        Arc::clone(&self.ledger) as _
    }
}
