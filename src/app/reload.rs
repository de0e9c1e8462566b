//! What SIGHUP does: the file is read again and takes effect, or is refused whole.

use std::{fmt, path::Path, sync::Arc};

use tokio::sync::watch;

use super::build;
use crate::{
    config::{self, Config, ProcessEnvironment},
    gateway::{Gateway, idempotency::Shared, proxy::Upstream},
    telemetry::{self, ReloadResult},
};

/// What a reload can replace.
pub(super) struct Running {
    pub(super) config: Config,
    pub(super) shared: Shared,
    pub(super) upstreams: Vec<(config::Upstream, Arc<Upstream>)>,
    pub(super) services: watch::Sender<Gateway>,
    /// For the operator's API.
    pub(super) in_effect: watch::Sender<Arc<Config>>,
}

// === impl Running ===

impl Running {
    /// Takes the file in effect, or refuses it whole and says why.
    pub(super) fn reload(&mut self, file: Option<&Path>) {
        let Some(file) = file else {
            tracing::warn!("nothing to reload: the configuration is not from a file");
            return;
        };
        let result = match config::load(file, &ProcessEnvironment) {
            Ok(loaded) => self.apply(loaded),
            Err(mistakes) => refuse(&mistakes),
        };
        telemetry::config_reloaded(result);
    }

    fn apply(&mut self, config::Loaded { config, warnings }: config::Loaded) -> ReloadResult {
        let conflicts = self.config.reload_conflicts(&config);
        if !conflicts.is_empty() {
            return refuse(&conflicts);
        }
        for warning in &warnings {
            tracing::warn!(%warning, "configuration");
        }
        let unchanged = [
            ("log", self.config.log == config.log),
            ("tracing", self.config.tracing == config.tracing),
            ("drain_delay", self.config.drain_delay == config.drain_delay),
            ("drain_timeout", self.config.drain_timeout == config.drain_timeout),
        ];
        for (field, _) in unchanged.iter().filter(|(_, unchanged)| !unchanged) {
            tracing::warn!(field, "the change takes effect at the next start");
        }
        let limits = &config.limits;
        self.shared.permits.resize(limits.max_in_flight, limits.max_in_flight_per_scope);
        self.shared.budget.resize(limits.buffered_bodies);
        self.shared.arbiter.resize(build::arbiter_limits(&config));
        self.upstreams = build::upstreams(&config, &self.upstreams);
        self.services.send_replace(build::gateway(&config, &self.shared, &self.upstreams));
        self.in_effect.send_replace(Arc::new(config.clone()));
        self.config = config;
        tracing::info!("configuration reloaded");
        ReloadResult::Applied
    }
}

fn refuse<T: fmt::Display>(reasons: &[T]) -> ReloadResult {
    for reason in reasons {
        tracing::error!(%reason, "reload refused: the old configuration stays in effect");
    }
    ReloadResult::Refused
}
