//! Turns the configuration into each room's own settings.

use std::{sync::Arc, time::Duration};

use http::Method;
use tracing::level_filters::LevelFilter;
use uuid::Uuid;

use crate::{
    arbiter::{self, Arbiter, Budget, Permits, Policy, Responses},
    config::{
        Balance, Config, Disposition, ForwardKey, InProgress, LogFormat, LogKeys, OnSessionLoss,
        Storage, UnknownOutcome,
    },
    domain::{Clock, Recipe},
    gateway::{
        Gateway, Match, Route,
        idempotency::{OpensGate, Settings, Shared},
        problem::{Code, Known, Problem},
        proxy::{self, Upstream},
    },
    ledger::{Takeover, embedded, zookeeper},
    server,
    telemetry::{
        KeyNaming, RouteMetrics, log,
        trace::{self, Tracer},
    },
};

/// Idle client connections are kept as long as nginx keeps them.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// As nginx waits for a client that takes nothing of its answer.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a closed connection is read on, so that its client sees the last answer.
const LINGER: Duration = Duration::from_secs(2);

/// After the drain's time: attempts are aborted, and their clients still get their answers.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What an upstream may take to say before its body.
const MAX_ANSWER_HEAD: usize = 256 * 1024;

/// Idle connections kept per endpoint.
const MAX_IDLE: usize = 512;

/// The configured id with a random suffix: two starts are two gateways.
pub(super) fn gateway_id(config: &Config) -> Arc<str> {
    let suffix = Uuid::new_v4().simple().to_string();
    Arc::from(format!("{}-{}", config.gateway_id, &suffix[..8]))
}

pub(super) fn log(config: &Config) -> log::Settings {
    let format = match config.log.format {
        LogFormat::Json => log::Format::Json,
        LogFormat::Text => log::Format::Text,
    };
    log::Settings { format, level: LevelFilter::from_level(config.log.level) }
}

pub(super) fn embedded(config: &Config, storage: &Storage) -> embedded::Settings {
    let durability = match storage {
        Storage::Fsync { path } => embedded::Durability::Fsync { path: path.clone() },
        Storage::Memory => embedded::Durability::Memory,
    };
    embedded::Settings {
        durability,
        timeout: config.ledger.timeout,
        clock: Clock::system(),
        sweep: embedded::Sweep::default(),
    }
}

pub(super) fn zookeeper(
    config: &Config,
    ensemble: &crate::config::ZooKeeper,
    gateway: Arc<str>,
) -> zookeeper::Settings {
    let auth = |auth: &crate::config::ZooKeeperAuth| zookeeper::Auth {
        scheme: auth.scheme.clone(),
        credentials: auth.credentials.clone(),
    };
    zookeeper::Settings {
        servers: ensemble.servers.clone(),
        root: ensemble.root.clone(),
        session_timeout: ensemble.session_timeout,
        tick_time: ensemble.tick_time,
        sessions: ensemble.sessions,
        auth: ensemble.auth.iter().map(auth).collect(),
        tls: ensemble.tls.clone(),
        timeout: config.ledger.timeout,
        gateway,
        clock: Clock::system(),
        sweep: zookeeper::Sweep::default(),
    }
}

pub(super) fn arbiter_limits(config: &Config) -> arbiter::Limits {
    arbiter::Limits {
        max_waiters_per_key: config.limits.max_waiters_per_key,
        replay_cache: config.limits.replay_cache,
    }
}

pub(super) fn server(config: &Config) -> server::Settings {
    let bytes = |code, detail| Problem::new(code, Known::NotSent, detail).into_closing_bytes();
    server::Settings {
        address: config.listen.address,
        header_timeout: config.listen.header_timeout,
        keep_alive: KEEP_ALIVE,
        write_timeout: WRITE_TIMEOUT,
        linger: LINGER,
        max_connections: config.listen.max_connections,
        max_header_size: usize::try_from(config.listen.max_header_size).unwrap_or(usize::MAX),
        drain: server::Drain {
            delay: config.drain_delay,
            timeout: config.drain_timeout,
            last_words: LAST_WORDS,
        },
        canned: server::Canned {
            bad_request: bytes(Code::BadRequest, "This is not an HTTP/1.1 request."),
            headers_too_large: bytes(
                Code::HeadersTooLarge,
                "The head of the request is over the limit.",
            ),
            request_timeout: bytes(
                Code::RequestTimeout,
                "The head of the request did not arrive in time.",
            ),
        },
    }
}

/// `None` where no spans are wanted.
pub(super) fn tracing(config: &Config, gateway: &Arc<str>) -> Option<trace::Settings> {
    let tracing = config.tracing.as_ref()?;
    let collector = tracing.otlp_endpoint.authority.clone();
    Some(trace::Settings { collector, gateway: Arc::clone(gateway) })
}

pub(super) fn shared(
    config: &Config,
    arbiter: Arbiter,
    gateway: Arc<str>,
    tracer: Tracer,
) -> Shared {
    let limits = &config.limits;
    Shared {
        arbiter,
        permits: Permits::new(limits.max_in_flight, limits.max_in_flight_per_scope),
        budget: Budget::new(limits.buffered_bodies),
        gateway,
        secret: config.key_secret.clone().map(Arc::new),
        key_naming: match config.log.keys {
            LogKeys::Plain => KeyNaming::Plain,
            LogKeys::Hashed => KeyNaming::Hashed,
        },
        tracer,
    }
}

/// The upstreams in the order of the file. Those of `former` whose settings are the same go on,
/// with their connections and counts.
pub(super) fn upstreams(
    config: &Config,
    former: &[(crate::config::Upstream, Arc<Upstream>)],
) -> Vec<(crate::config::Upstream, Arc<Upstream>)> {
    let reuse = |wanted| former.iter().find(|(settings, _)| settings == wanted).cloned();
    let build = |wanted| (Clone::clone(wanted), Arc::new(Upstream::new(upstream(wanted))));
    config.upstreams.iter().map(|wanted| reuse(wanted).unwrap_or_else(|| build(wanted))).collect()
}

pub(super) fn upstream(upstream: &crate::config::Upstream) -> proxy::Settings {
    let endpoint = |endpoint: &crate::config::Endpoint| proxy::Endpoint {
        host: endpoint.host.clone(),
        port: endpoint.port,
    };
    proxy::Settings {
        name: Arc::from(&*upstream.name),
        endpoints: upstream.endpoints.iter().map(endpoint).collect(),
        balance: match upstream.balance {
            Balance::LeastRequests => proxy::Balance::LeastRequests,
            Balance::RoundRobin => proxy::Balance::RoundRobin,
        },
        connect_timeout: upstream.connect_timeout,
        request_timeout: upstream.request_timeout,
        idle_timeout: upstream.idle_timeout,
        stream_timeout: upstream.stream_timeout,
        max_answer_head: MAX_ANSWER_HEAD,
        max_idle: MAX_IDLE,
    }
}

pub(super) fn gateway(
    config: &Config,
    shared: &Shared,
    upstreams: &[(crate::config::Upstream, Arc<Upstream>)],
) -> Gateway {
    let routes = config.routes.iter().map(|route| {
        let matching = Match {
            host: route.matching.host.as_deref().map(Into::into),
            path_prefix: route.matching.path_prefix.as_str().into(),
            methods: route.matching.methods.clone(),
        };
        let (_, upstream) = &upstreams[route.upstream];
        match &route.idempotency {
            None => Route::plain(&route.name, matching, upstream),
            Some(rules) => {
                let settings = idempotency(config, route, rules);
                Route::keyed(matching, upstream, shared.clone(), settings)
            }
        }
    });
    let listen = &config.listen;
    let trusted = listen.trusted_proxies.clone();
    Gateway::new(routes.collect(), shared.clone(), trusted, listen.body_timeout)
}

fn idempotency(
    config: &Config,
    route: &crate::config::Route,
    rules: &crate::config::Idempotency,
) -> Settings {
    let methods: Vec<Method> = route.keyed_methods().to_vec();
    let recipe = Recipe {
        version: Recipe::VERSION,
        body: rules.fingerprint.body.clone(),
        headers: rules.fingerprint.headers.clone(),
        // A route of one host has one authority, which clients may spell with or without a port.
        authority: route.matching.host.is_none(),
    };
    let policy = Policy {
        takeover: match rules.unknown_outcome {
            UnknownOutcome::Reject => Takeover::Never,
            UnknownOutcome::Retry { attempts } => Takeover::UpTo(attempts),
        },
        retention: rules.retention,
        responses: Arc::new(responses(&rules.responses)),
        settles: rules.on_session_loss == OnSessionLoss::Settle,
    };
    Settings {
        route: Arc::from(&*route.name),
        namespace: Arc::from(&*rules.namespace),
        scope: rules.scope.clone(),
        methods,
        header: rules.header.clone(),
        required: rules.required,
        key: rules.key,
        recipe: Arc::new(recipe),
        policy: Arc::new(policy),
        wait: match rules.in_progress {
            InProgress::Wait(wait) => Some(wait),
            InProgress::Reject => None,
        },
        max_request_body: rules.max_request_body,
        max_stored_body: rules.max_stored_body,
        body_timeout: config.listen.body_timeout,
        forward_key: match rules.forward_key {
            ForwardKey::Pass => true,
            ForwardKey::Strip => false,
        },
        replay_header: rules.replay_header.clone(),
        drop_headers: rules.drop_headers.clone(),
        opens_gate: OpensGate::Service,
        metrics: RouteMetrics::new(&route.name),
    }
}

fn responses(table: &crate::config::Responses) -> Responses {
    let meaning = |disposition| match disposition {
        Disposition::Store => arbiter::Disposition::Store,
        Disposition::Release => arbiter::Disposition::Release,
        Disposition::Unknown => arbiter::Disposition::Unknown,
    };
    let exact = table.exact.iter().fold(Responses::default(), |responses, (&status, &what)| {
        responses.status(status, meaning(what))
    });
    table
        .classes
        .iter()
        .fold(exact, |responses, (&class, &what)| responses.class(class, meaning(what)))
}
