//! One run of the gateway, from its start to the end of its drain.

use std::{fmt, future::Future, io, num::NonZero, path::PathBuf, sync::Arc};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use uuid::Uuid;

use super::{
    Addresses, build,
    directory::Directory,
    housekeeping::Housekeeping,
    ledger::{self, OpenError, Opened},
    signals::{Request, Signals},
    workers::Workers,
};
use crate::{
    admin::{Admin, Api, Readiness},
    arbiter::Arbiter,
    config::{self, Config, ProcessEnvironment, Warning},
    domain::Clock,
    gateway::{Gateway, idempotency::Shared, proxy::Upstream},
    server::Server,
    telemetry::{self, ReloadResult},
};

/// What to run.
#[derive(Debug)]
pub struct Program {
    pub config: Config,
    /// The file that a reload reads again; without one there is no reload.
    pub file: Option<PathBuf>,
    /// What the file says that is allowed but rarely meant.
    pub warnings: Vec<Warning>,
}

/// Why the gateway could not start, or did not stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("could not listen on {address} ({what}); is another process listening there?")]
    Listen {
        what: &'static str,
        address: std::net::SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Ledger(#[from] OpenError),
    #[error("could not start logging")]
    Log(#[from] telemetry::log::InitError),
    #[error("could not start metrics")]
    Metrics(#[from] telemetry::InstallError),
    #[error("could not start the threads that serve requests")]
    Workers(#[source] io::Error),
    #[error("could not listen for signals")]
    Signals(#[source] io::Error),
}

/// What a reload can replace.
struct Running {
    config: Config,
    shared: Shared,
    upstreams: Vec<(config::Upstream, Arc<Upstream>)>,
    services: watch::Sender<Gateway>,
    /// For the operator's API.
    in_effect: watch::Sender<Arc<Config>>,
}

/// Runs the gateway until it is told to stop, and then until what was in flight is stored.
///
/// `started` is called once requests are accepted. Call within a runtime, once per process: logs
/// and metrics are the process's.
pub async fn run(program: Program, started: impl FnOnce(Addresses)) -> Result<(), RunError> {
    let Program { config, file, warnings } = program;
    let log = telemetry::log::init(build::log(&config))?;
    let metrics = telemetry::install(log.dropped_lines())?;
    let mut signals = Signals::new().map_err(RunError::Signals)?;
    for warning in &warnings {
        tracing::warn!(%warning, "configuration");
    }

    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let servers = Server::bind(&build::server(&config), processors);
    let servers = servers.map_err(|source| RunError::Listen {
        what: "listen.address",
        address: config.listen.address,
        source,
    })?;
    let public = servers.first().map_or(config.listen.address, Server::local_address);
    let gateway_id = gateway_id(&config);
    let Opened { ledger, operator, embedded } = ledger::open(&config, &gateway_id).await?;
    let readiness = Readiness::new(Arc::clone(&ledger));
    let arbiter =
        Arbiter::new(Arc::clone(&ledger), build::arbiter_limits(&config), Clock::system());
    let in_effect = watch::Sender::new(Arc::new(config.clone()));
    let api = Api {
        operator,
        directory: Arc::new(Directory::new(in_effect.subscribe(), arbiter.clone())),
        token: config.admin.token.clone(),
    };
    let admin =
        Admin::bind(config.admin.address, readiness.clone(), metrics.clone(), Some(api)).await;
    let admin = admin.map_err(|source| RunError::Listen {
        what: "admin.address",
        address: config.admin.address,
        source,
    })?;
    let shared = build::shared(&config, arbiter.clone(), gateway_id);
    let upstreams = build::upstreams(&config, &[]);
    let (services, current) = watch::channel(build::gateway(&config, &shared, &upstreams));

    let addresses = Addresses { public, admin: admin.local_address() };
    let mut workers = Workers::start(servers, &current).map_err(RunError::Workers)?;
    let housekeeping =
        Housekeeping { metrics, arbiter: arbiter.clone(), budget: shared.budget.clone(), embedded };
    let background =
        [tokio::spawn(housekeeping.run()), tokio::spawn(admin.serve(std::future::pending()))];
    tracing::info!(
        address = %addresses.public,
        admin = %addresses.admin,
        gateway = &*shared.gateway,
        version = env!("CARGO_PKG_VERSION"),
        "gateway started"
    );
    started(addresses);

    let (drain_delay, drain_timeout) = (config.drain_delay, config.drain_timeout);
    let ledger_timeout = config.ledger.timeout;
    let mut running = Running { config, shared, upstreams, services, in_effect };
    while signals.next().await == Request::Reload {
        running.reload(file.as_ref());
    }
    tracing::info!("gateway stops: finishing what is in flight");
    readiness.drain();
    workers.stop();
    let finished = async {
        workers.drained().await;
        // Executions whose clients have left.
        arbiter.idle().await;
    };
    drain(finished, &arbiter, &mut signals, sleep(drain_delay + drain_timeout)).await;
    // Not for ever: a file that cannot be written may stay so.
    if timeout(ledger_timeout, ledger.close()).await.is_err() {
        tracing::error!("ledger is not closed: what it could not store is unknown from now on");
    }
    drop(workers);
    for task in background {
        task.abort();
    }
    tracing::info!("gateway stopped");
    drop(log);
    Ok(())
}

/// Waits for what is in flight; what is not over in time, or when a second signal comes, is
/// aborted and left unknown.
async fn drain(
    finished: impl Future<Output = ()>,
    arbiter: &Arbiter,
    signals: &mut Signals,
    patience: impl Future<Output = ()>,
) {
    tokio::pin!(finished);
    let told_again = async { while signals.next().await != Request::Stop {} };
    tokio::select! {
        () = &mut finished => return,
        () = patience => {}
        () = told_again => {}
    }
    let attempts = arbiter.abort();
    tracing::warn!(attempts, "drain is over: what was in flight is aborted");
    finished.await;
}

/// The configured id with a random suffix: two starts are two gateways.
fn gateway_id(config: &Config) -> Arc<str> {
    let suffix = Uuid::new_v4().simple().to_string();
    Arc::from(format!("{}-{}", config.gateway_id, &suffix[..8]))
}

// === impl Running ===

impl Running {
    /// Takes the file in effect, or refuses it whole and says why.
    fn reload(&mut self, file: Option<&PathBuf>) {
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
