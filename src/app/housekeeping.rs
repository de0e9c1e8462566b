//! What is done every second while the gateway runs: gauges are set, histograms sorted.

use std::{sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use crate::{
    arbiter::{Arbiter, Budget},
    ledger::embedded::Embedded,
    telemetry::{self, Metrics, Stored},
};

/// Everything that is told, not counted.
#[derive(Clone, Debug)]
pub(super) struct Housekeeping {
    pub(super) metrics: Metrics,
    pub(super) arbiter: Arbiter,
    pub(super) budget: Budget,
    /// Without it, the sweeper of the ensemble tells what is stored.
    pub(super) embedded: Option<Arc<Embedded>>,
}

const PERIOD: Duration = Duration::from_secs(1);

// === impl Housekeeping ===

impl Housekeeping {
    /// Runs until it is dropped.
    pub(super) async fn run(self) {
        let (buffered, cached) = (telemetry::buffered_bytes(), telemetry::replay_cache_bytes());
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.metrics.upkeep();
            buffered.set(self.budget.held());
            cached.set(self.arbiter.cached_bytes());
            let Some(embedded) = &self.embedded else { continue };
            let stats = embedded.stats();
            telemetry::record_stored(&Stored {
                in_progress: stats.in_progress,
                completed: stats.completed,
                unknown: stats.unknown,
                bytes: stats.bytes,
            });
        }
    }
}
