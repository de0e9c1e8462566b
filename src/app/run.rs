//! One run of the gateway, from its start to the end of its drain.

use std::{future::Future, io, num::NonZero, path::PathBuf, sync::Arc, thread};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Addresses, build,
    directory::Directory,
    housekeeping::Housekeeping,
    ledger::{self, OpenError, Opened},
    reload::Running,
    signals::{Request, Signals, told_to_stop, unless_stopped},
    workers::Workers,
};
use crate::{
    BoxError,
    admin::{Admin, Api, Readiness},
    arbiter::Arbiter,
    config::{Config, Warning},
    domain::Clock,
    server::Server,
    telemetry::{
        self,
        trace::{self, Tracer},
    },
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
    #[error("could not start sending spans to tracing.otlp_endpoint")]
    Tracing(#[source] BoxError),
    #[error("could not start the threads that open the ledger and serve requests")]
    Threads(#[source] io::Error),
    #[error("could not listen for signals")]
    Signals(#[source] io::Error),
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

    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let taken = |what, address| move |source| RunError::Listen { what, address, source };
    let cannot_listen = taken("listen.address", config.listen.address);
    let bound = Server::bind(&build::server(&config), processors).map_err(cannot_listen)?;
    let (admin, starting) = Admin::bind(config.admin.address, metrics.clone())
        .await
        .map_err(taken("admin.address", config.admin.address))?;
    let addresses = Addresses { public: bound.local_address(), admin: admin.local_address() };
    let serving_admin = tokio::spawn(admin.serve());
    let gateway_id = build::gateway_id(&config);
    let (tracer, exporter) = match build::tracing(&config, &gateway_id) {
        Some(settings) => {
            let (tracer, exporter) = trace::start(&settings).map_err(RunError::Tracing)?;
            (tracer, Some(exporter))
        }
        None => (Tracer::default(), None),
    };
    let opening = ledger::open(&config, &gateway_id);
    let Some(opened) = unless_stopped(&mut signals, opening).await else {
        tracing::info!("gateway stopped before it had started");
        return Ok(());
    };
    let Opened { ledger, operator, embedded } = opened?;
    let readiness = Readiness::new(Arc::clone(&ledger));
    let arbiter =
        Arbiter::new(Arc::clone(&ledger), build::arbiter_limits(&config), Clock::system());
    let in_effect = watch::Sender::new(Arc::new(config.clone()));
    let api = Api {
        operator,
        directory: Arc::new(Directory::new(in_effect.subscribe(), arbiter.clone())),
        token: config.admin.token.clone(),
    };
    let shared = build::shared(&config, arbiter.clone(), gateway_id, tracer);
    let upstreams = build::upstreams(&config, &[]);
    let (services, current) = watch::channel(build::gateway(&config, &shared, &upstreams));

    // Last, so that clients of a gateway that starts are refused rather than left waiting.
    let servers = bound.listen().map_err(cannot_listen)?;
    let mut workers = Workers::start(servers, &current).map_err(RunError::Threads)?;
    let housekeeping =
        Housekeeping { metrics, arbiter: arbiter.clone(), budget: shared.budget.clone(), embedded };
    let background = [tokio::spawn(housekeeping.run()), serving_admin];
    starting.end(readiness.clone(), Some(api));
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
        running.reload(file.as_deref());
    }
    tracing::info!("gateway stops: finishing what is in flight");
    readiness.drain();
    workers.stop();
    let cut = workers.cut();
    let finished = async {
        workers.drained().await;
        // Executions whose clients have left.
        arbiter.idle().await;
    };
    drain(finished, (&arbiter, &cut), &mut signals, sleep(drain_delay + drain_timeout)).await;
    // Not for ever: a file that cannot be written may stay so.
    if timeout(ledger_timeout, ledger.close()).await.is_err() {
        tracing::error!("ledger is not closed: what it could not store is unknown from now on");
    }
    drop(workers);
    if let Some(exporter) = exporter {
        exporter.flush().await;
    }
    for task in background {
        task.abort();
    }
    tracing::info!("gateway stopped");
    drop(log);
    Ok(())
}

/// Waits for what is in flight; what is not over in time, or when a second signal comes, is
/// aborted and left unknown, and the connections are cut off after the last words.
async fn drain(
    finished: impl Future<Output = ()>,
    (arbiter, cut): (&Arbiter, &CancellationToken),
    signals: &mut Signals,
    patience: impl Future<Output = ()>,
) {
    tokio::pin!(finished);
    tokio::select! {
        () = &mut finished => return,
        () = patience => {}
        () = told_to_stop(signals) => {}
    }
    let attempts = arbiter.abort();
    cut.cancel();
    tracing::warn!(attempts, "drain is over: what was in flight is aborted");
    finished.await;
}
