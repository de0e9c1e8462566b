//! Turns a checked tree into the [`Config`], with the rules that need more than one look.

mod headers;
mod idempotency;
mod policy;
mod routes;
mod upstreams;
mod value;
mod zookeeper;

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use ipnet::IpNet;

use self::{
    upstreams::{Words, read_endpoint},
    value::Value,
};
use super::{
    model::{
        Admin, Config, Ledger, LedgerKind, Limits, Listen, Log, LogFormat, LogKeys, Storage,
        Tracing,
    },
    remark::Notes,
    tree::Node,
};

/// `None` if anything in the file is mistaken.
pub(super) fn read(tree: &Node, notes: &Notes<'_>) -> Option<Config> {
    let file = Value::root(tree, notes);
    // Each part is read before any is asked for, so that all mistakes are found.
    let (listen, admin) = (file.get("listen"), file.get("admin"));
    let listeners = (listen.as_ref().and_then(read_listen), admin.as_ref().and_then(read_admin));
    if let (Some(listen), Some(admin), (Some(public), Some(private))) = (listen, admin, &listeners)
    {
        one_address_each(&listen, &admin, public, private);
    }
    let gateway_id = file.get("gateway_id").and_then(|id| id.name());
    let ledger = file.get("ledger").and_then(|ledger| read_ledger(&ledger));
    let limits = file.get("limits").and_then(|limits| read_limits(&limits));
    let upstreams = file.get("upstreams").map(|upstreams| upstreams::read(&upstreams));
    let names = file.get("upstreams").map(|upstreams| upstreams.entries());
    let names: Option<Vec<&str>> =
        names.map(|entries| entries.into_iter().map(|(name, _)| name).collect());
    let routes = file.get("routes");
    let routes = routes.and_then(|routes| routes::read(&routes, &names.unwrap_or_default()));
    let log = file.get("log").and_then(|log| read_log(&log));
    let tracing = file.get("tracing").map(|tracing| read_tracing(&tracing));
    let config = Config {
        listen: listeners.0?,
        admin: listeners.1?,
        gateway_id: gateway_id?,
        ledger: ledger?,
        limits: limits?,
        key_secret: file.secret("key_secret"),
        upstreams: upstreams??,
        routes: routes?,
        drain_delay: file.duration("drain_delay")?,
        drain_timeout: file.duration("drain_timeout")?,
        log: log?,
        tracing: match tracing {
            Some(tracing) => Some(tracing?),
            None => None,
        },
    };
    room_for_a_body(&file, &config);
    zookeeper::room_for_an_answer(&file, &config);
    zookeeper::sessions_to_lose(&file, &config);
    Some(config)
}

fn read_listen(listen: &Value<'_>) -> Option<Listen> {
    let address = listen.get("address").and_then(|address| read_address(&address));
    let trusted_proxies = match listen.get("trusted_proxies") {
        Some(proxies) => proxies.each(read_network),
        None => Some(Vec::new()),
    };
    Some(Listen {
        address: address?,
        trusted_proxies: trusted_proxies?,
        header_timeout: listen.duration("header_timeout")?,
        body_timeout: listen.duration("body_timeout")?,
        max_connections: listen.count("max_connections")?,
        max_header_size: listen.size("max_header_size")?,
    })
}

fn read_admin(admin: &Value<'_>) -> Option<Admin> {
    let field = admin.get("address")?;
    let address = read_address(&field)?;
    // What is there but mistaken was reported already.
    if !address.ip().is_loopback() && admin.get("token").is_none() {
        field.mistake(
            &format!("{} can be reached from other machines, and there is no token", field.shown()),
            "set `admin.token`, best to `${ONCEGATE_ADMIN_TOKEN}`, or listen on 127.0.0.1",
        );
        return None;
    }
    Some(Admin { address, token: admin.secret("token") })
}

fn read_address(value: &Value<'_>) -> Option<SocketAddr> {
    match value.text()?.parse() {
        Ok(address) => Some(address),
        Err(_) => value.is_not(
            "is not an IP address with a port",
            "write one like `127.0.0.1:8080` or `[::]:8080`",
        ),
    }
}

fn read_network(value: &Value<'_>) -> Option<IpNet> {
    let text = value.text()?;
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let Some(network) = text.parse::<IpNet>().ok().or_else(address) else {
        return value.is_not(
            "is not a network",
            "write a network or an address, like `10.0.0.0/8` or `::1`",
        );
    };
    if network.trunc() != network {
        let right = format!("write `{}`", network.trunc());
        // The corrected network would tell what the environment holds.
        let right = if value.shown().contains("${") { "write its first address" } else { &right };
        return value.is_not("has bits set behind its prefix", right);
    }
    Some(network)
}

/// Metrics and the key API must never be served to the public.
fn one_address_each(listen: &Value<'_>, admin: &Value<'_>, public: &Listen, private: &Admin) {
    let (public, private) = (public.address, private.address);
    let is_same_ip = public.ip() == private.ip()
        || public.ip().is_unspecified()
        || private.ip().is_unspecified();
    // Port 0 is a different port each time.
    if public.port() == private.port() && public.port() != 0 && is_same_ip {
        let first = listen.get("address").map_or(0, |address| address.span.start.line);
        if let Some(address) = admin.get("address") {
            address.mistake(
                &format!("{} is taken by `listen.address` in line {first}", address.shown()),
                "give the admin listener a port of its own",
            );
        }
    }
}

fn read_ledger(ledger: &Value<'_>) -> Option<Ledger> {
    let timeout = ledger.duration("timeout");
    let kind = match ledger.get("kind")?.text()? {
        "zookeeper" => LedgerKind::ZooKeeper(zookeeper::read(ledger)?),
        _ => LedgerKind::Embedded(read_embedded(ledger)?),
    };
    Some(Ledger { timeout: timeout?, kind })
}

fn read_embedded(ledger: &Value<'_>) -> Option<Storage> {
    let Some(embedded) = ledger.get("embedded") else {
        let right = "write a block with `path` and `durability`";
        ledger.mistake("`kind: embedded` has no `embedded` block", right);
        return None;
    };
    let memory = embedded.word("durability", &[("fsync", false), ("memory", true)]);
    let path = embedded.get("path");
    match (memory?, path) {
        (false, Some(path)) => Some(Storage::Fsync { path: PathBuf::from(path.text()?) }),
        (false, None) => {
            let right = "write `path: ./oncegate.redb`, or `durability: memory` for a test";
            embedded.mistake("`path` is missing", right);
            None
        }
        (true, None) => Some(Storage::Memory),
        (true, Some(path)) => {
            let right = "leave it out, or write `durability: fsync`";
            path.mistake("`durability: memory` writes no file", right);
            None
        }
    }
}

fn read_limits(limits: &Value<'_>) -> Option<Limits> {
    Some(Limits {
        max_in_flight: limits.count("max_in_flight")?,
        max_in_flight_per_scope: limits.count("max_in_flight_per_scope")?,
        max_waiters_per_key: limits.count("max_waiters_per_key")?,
        buffered_bodies: limits.size("buffered_bodies")?,
        replay_cache: limits.size("replay_cache")?,
    })
}

fn read_log(log: &Value<'_>) -> Option<Log> {
    use tracing::Level;
    let levels = [
        ("error", Level::ERROR),
        ("warn", Level::WARN),
        ("info", Level::INFO),
        ("debug", Level::DEBUG),
        ("trace", Level::TRACE),
    ];
    Some(Log {
        format: log.word("format", &[("json", LogFormat::Json), ("text", LogFormat::Text)])?,
        level: log.word("level", &levels)?,
        keys: log.word("keys", &[("plain", LogKeys::Plain), ("hashed", LogKeys::Hashed)])?,
    })
}

fn read_tracing(tracing: &Value<'_>) -> Option<Tracing> {
    let words = Words {
        form: "write one like `http://collector:4318`",
        tls: "asks for TLS to the collector, which is not built yet",
        path: "leave it out: spans go to `/v1/traces`",
    };
    Some(Tracing { otlp_endpoint: read_endpoint(&tracing.get("otlp_endpoint")?, &words)? })
}

/// A body that never fits would be refused for ever with "try again".
fn room_for_a_body(file: &Value<'_>, config: &Config) {
    let fields = file.get("routes").map(|routes| routes.items()).unwrap_or_default();
    for (route, field) in config.routes.iter().zip(fields) {
        let Some(rules) = &route.idempotency else { continue };
        let needed = rules.max_request_body.saturating_add(rules.max_stored_body);
        if needed <= config.limits.buffered_bodies {
            continue;
        }
        if let Some(rules) = field.get("idempotency") {
            rules.mistake(
                "`max_request_body` and `max_stored_body` together are over \
                 `limits.buffered_bodies`",
                "make them smaller, or raise the limit",
            );
        }
    }
}
