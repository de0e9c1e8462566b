//! Reads how an ensemble is reached, and what does not fit into one.

use std::path::PathBuf;

use super::value::Value;
use crate::{
    config::model::{Config, LedgerKind, OnSessionLoss, ZooKeeper, ZooKeeperAuth},
    domain::Secret,
    ledger::zookeeper::{TlsFiles, TlsIdentityFiles, can_be_certified, lease},
};

/// An answer is stored in one packet, and the servers take about 1 MiB.
const MOST_STORED: u64 = 512 * 1024;

pub(super) fn read(ledger: &Value<'_>) -> Option<ZooKeeper> {
    let Some(block) = ledger.get("zookeeper") else {
        let right =
            "write a block with `servers`, like `{ servers: [zk1:2181, zk2:2181, zk3:2181] }`";
        ledger.mistake("`kind: zookeeper` has no `zookeeper` block", right);
        return None;
    };
    let servers = block.get("servers").and_then(|servers| servers.each(read_server));
    let root = block.get("root").and_then(|root| read_root(&root));
    let auth = match block.get("auth") {
        Some(auth) => auth.each(read_auth),
        None => Some(Vec::new()),
    };
    let tls = block.get("tls").map(|tls| read_tls(&tls));
    if let (Some(_), Some(servers)) = (&tls, &servers) {
        let fields = block.get("servers")?.items();
        let mut named = servers.iter().zip(fields);
        if let Some((_, field)) = named.find(|(name, _)| !can_be_certified(name)) {
            let right = "write a name or an address that a certificate can be for";
            return field.is_not("is no server that TLS can prove", right);
        }
    }
    let session_timeout = block.duration("session_timeout")?;
    let tick_time = block.duration("tick_time")?;
    if lease(session_timeout, tick_time).is_zero() {
        block.get("session_timeout")?.mistake(
            "a session this short leaves no time in which its locks are surely ours",
            "write 6 ticks or more, like `12s`",
        );
        return None;
    }
    Some(ZooKeeper {
        servers: servers?,
        root: root?,
        session_timeout,
        tick_time,
        sessions: block.count("sessions")?,
        auth: auth?,
        tls: match tls {
            Some(tls) => Some(tls?),
            None => None,
        },
    })
}

fn read_server(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
    let is_server = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', '?', '#', '@', ',', ' ']) && is_port(port)
    });
    if is_server {
        return Some(text.to_owned());
    }
    value.is_not("is not a server", "write `host:port`, like `zk1:2181`")
}

fn read_root(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_step =
        |step: &str| !step.is_empty() && !matches!(step, "." | "..") && step.chars().all(is_inner);
    match text.strip_prefix('/') {
        Some(steps) if steps.split('/').next() == Some("zookeeper") => {
            value.is_not("belongs to the servers", "write a path like `/dedup`")
        }
        Some(steps) if steps.split('/').all(is_step) => Some(text.to_owned()),
        Some(_) | None => value.is_not("is not a path", "write a path like `/dedup`"),
    }
}

fn read_auth(value: &Value<'_>) -> Option<ZooKeeperAuth> {
    let credentials = value.get("credentials")?;
    let text = credentials.text()?;
    if !text
        .split_once(':')
        .is_some_and(|(user, password)| !user.is_empty() && !password.is_empty())
    {
        credentials.mistake("these are not a user and a password", "write `user:password`");
        return None;
    }
    let scheme = value.get("scheme")?.text()?.to_owned();
    Some(ZooKeeperAuth { scheme, credentials: Secret::new(text.as_bytes()) })
}

fn read_tls(tls: &Value<'_>) -> Option<TlsFiles> {
    let path = |key| tls.get(key).and_then(|path| path.text()).map(PathBuf::from);
    let identity = match (path("certificate"), path("private_key")) {
        (Some(certificate), Some(private_key)) => {
            Some(TlsIdentityFiles { certificate, private_key })
        }
        (None, None) => None,
        (certificate, _) => {
            let (there, missing) = match certificate {
                Some(_) => ("certificate", "private_key"),
                None => ("private_key", "certificate"),
            };
            let wrong = format!("`{missing}` is missing");
            tls.named(there)?.mistake(&wrong, "write both, or neither if the servers ask for none");
            return None;
        }
    };
    let files = TlsFiles { ca: path("ca")?, identity };
    let Err(mistakes) = files.check() else { return Some(files) };
    for mistake in mistakes {
        tls.get(mistake.file.field())?.is_not::<()>(&mistake.wrong, mistake.right);
    }
    None
}

/// An answer over the size of a packet could never be stored.
pub(super) fn room_for_an_answer(file: &Value<'_>, config: &Config) {
    let LedgerKind::ZooKeeper(_) = config.ledger.kind else { return };
    let fields = file.get("routes").map(|routes| routes.items()).unwrap_or_default();
    for (route, field) in config.routes.iter().zip(fields) {
        let is_over =
            route.idempotency.as_ref().is_some_and(|rules| rules.max_stored_body > MOST_STORED);
        let rules = field.get("idempotency");
        if let Some(size) = rules.and_then(|rules| rules.get("max_stored_body"))
            && is_over
        {
            size.mistake(
                "the ensemble takes packets of 1 MiB at most, and an answer has to fit into one",
                "write 512KiB or less",
            );
        }
    }
}

/// A call can only be left to finish where there are sessions.
pub(super) fn sessions_to_lose(file: &Value<'_>, config: &Config) {
    let LedgerKind::Embedded(_) = config.ledger.kind else { return };
    let fields = file.get("routes").map(|routes| routes.items()).unwrap_or_default();
    for (route, field) in config.routes.iter().zip(fields) {
        let settles = route
            .idempotency
            .as_ref()
            .is_some_and(|rules| rules.on_session_loss == OnSessionLoss::Settle);
        let rules = field.get("idempotency");
        if let Some(field) = rules.and_then(|rules| rules.get("on_session_loss"))
            && settles
        {
            field.mistake(
                "the embedded ledger has no session to lose",
                "write `abort`, or leave it out",
            );
        }
    }
}
