//! What is allowed and rarely meant.

use std::time::Duration;

use http::{StatusCode, header::AUTHORIZATION};

use super::{
    model::{
        Config, Disposition, Idempotency, InProgress, LedgerKind, Responses, Route, Storage,
        UnknownOutcome, Upstream, ZooKeeper,
    },
    remark::{MOST, WHOLE_FILE, Warning},
    source::{Source, Span},
    tree::{Entry, Kind, Node},
};
use crate::{
    domain::{BodyMode, ScopeSource, Secret},
    ledger::zookeeper::lease,
};

/// Beyond it, a caller's own time limit is over first.
const LONG_REQUEST: Duration = Duration::from_mins(10);
const LONG_WAIT: Duration = Duration::from_secs(80);

/// A shorter secret can be guessed by who sees what was made with it.
const LONG_SECRET: usize = 16;

/// Below it, an ordinary pause of a process ends its leases.
const SHORT_LEASE: Duration = Duration::from_secs(2);

/// Of collectors, for OTLP over gRPC.
const GRPC: u16 = 4317;

/// Collects warnings with the places of their fields.
struct Warnings<'a> {
    tree: &'a Node,
    source: &'a Source,
    found: Vec<Warning>,
}

/// In the order of the file.
pub(super) fn of(config: &Config, tree: &Node, source: &Source) -> Vec<Warning> {
    let mut warnings = Warnings { tree, source, found: Vec::new() };
    warnings.secret(&["key_secret"], config.key_secret.as_ref());
    warnings.secret(&["admin", "token"], config.admin.token.as_ref());
    warnings.references(tree, "");
    warnings.proxies(config);
    warnings.ledger(config);
    warnings.upstreams(config);
    warnings.tracing(config);
    for (index, route) in config.routes.iter().enumerate() {
        let (earlier, index) = (&config.routes[..index], index.to_string());
        warnings.route(earlier, &index, route);
        if let Some(rules) = &route.idempotency {
            warnings.idempotency(&index, rules);
            warnings.comparison(&index, rules);
            warnings.lives(&index, rules, &config.upstreams[route.upstream]);
            warnings.releases(&index, &rules.responses);
            warnings.namespace(earlier, &index, rules);
        }
    }
    warnings.found.sort_by_key(Warning::place);
    warnings.found
}

// === impl Warnings ===

impl Warnings<'_> {
    /// `path` has a step for each key and, in a list, the index.
    fn warn(&mut self, path: &[&str], text: &str) {
        if self.found.len() >= MOST {
            return self.skip();
        }
        let span = place_of(self.tree, path);
        let field = match path {
            ["routes", index, rest @ ..] => format!("routes[{index}].{}", rest.join(".")),
            ["listen", "trusted_proxies", index] => format!("listen.trusted_proxies[{index}]"),
            ["ledger", "zookeeper", "auth", index, field] => {
                format!("ledger.zookeeper.auth[{index}].{field}")
            }
            _ => path.join("."),
        };
        self.found.push(Warning::new(self.source, span, &field, text.to_owned()));
    }

    /// Says once that there are more warnings than are collected.
    fn skip(&mut self) {
        if self.found.len() == MOST {
            let text = format!("there are more than {MOST} warnings; these are the first found");
            self.found.push(Warning::new(self.source, self.tree.span, WHOLE_FILE, text));
        }
    }

    fn secret(&mut self, path: &[&str], secret: Option<&Secret>) {
        if secret.is_some_and(|secret| secret.expose().len() < LONG_SECRET) {
            self.warn(path, "a secret under 16 characters can be guessed; write a longer one");
        }
    }

    /// A reference that lacks its braces is a text like any other, also as a secret.
    fn references(&mut self, node: &Node, path: &str) {
        match &node.kind {
            Kind::Scalar(scalar) if holds_bare_reference(&scalar.written) => {
                if self.found.len() >= MOST {
                    return self.skip();
                }
                let text = "`$NAME` without braces is plain text; write `${NAME}` to take it from \
                            the environment";
                self.found.push(Warning::new(self.source, node.span, path, text.to_owned()));
            }
            Kind::Scalar(_) | Kind::Mistaken => {}
            Kind::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.references(item, &format!("{path}[{index}]"));
                }
            }
            Kind::Mapping(entries) => {
                for Entry { key, value, .. } in entries {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.references(value, &format!("{path}{dot}{key}"));
                }
            }
        }
    }

    fn proxies(&mut self, config: &Config) {
        for (index, network) in config.listen.trusted_proxies.iter().enumerate() {
            if network.prefix_len() == 0 {
                self.warn(
                    &["listen", "trusted_proxies", &index.to_string()],
                    "anybody is believed about who the client is; name the networks of your \
                     proxies only",
                );
            }
        }
    }

    fn tracing(&mut self, config: &Config) {
        if config.tracing.as_ref().is_some_and(|tracing| tracing.otlp_endpoint.port == GRPC) {
            self.warn(
                &["tracing", "otlp_endpoint"],
                "at port 4317 collectors usually speak gRPC, and spans are sent over HTTP; that is \
                 usually port 4318",
            );
        }
    }

    fn ledger(&mut self, config: &Config) {
        let storage = match &config.ledger.kind {
            LedgerKind::Embedded(storage) => storage,
            LedgerKind::ZooKeeper(ensemble) => return self.ensemble(ensemble),
        };
        self.warn(
            &["ledger", "kind"],
            "an embedded ledger serves one gateway process; a second one would not know its keys",
        );
        if *storage == Storage::Memory {
            self.warn(
                &["ledger", "embedded", "durability"],
                "a restart forgets every key; write `fsync` where running twice would cost",
            );
        }
    }

    fn ensemble(&mut self, ensemble: &ZooKeeper) {
        let block = ["ledger", "zookeeper"];
        if ensemble.auth.is_empty() {
            self.warn(
                &block,
                "there is no `auth`: whoever reaches the ensemble can read and change stored \
                 answers",
            );
        }
        for (index, auth) in ensemble.auth.iter().enumerate() {
            if auth.credentials.expose().ends_with(b"change-me") {
                let index = index.to_string();
                self.warn(
                    &["ledger", "zookeeper", "auth", &index, "credentials"],
                    "anybody can read this password in the examples; take one of your own from the \
                     environment",
                );
            }
        }
        let servers = ensemble.servers.len();
        if servers.is_multiple_of(2) {
            let text = format!(
                "{servers} servers survive no more failures than {} do",
                servers.saturating_sub(1)
            );
            self.warn(&["ledger", "zookeeper", "servers"], &text);
        }
        let timeout = ["ledger", "zookeeper", "session_timeout"];
        let (asked, tick) = (ensemble.session_timeout, ensemble.tick_time);
        if asked < 2 * tick || asked > 20 * tick {
            self.warn(
                &timeout,
                "servers give sessions of 2 to 20 ticks unless they are told otherwise, so this \
                 becomes another",
            );
        }
        if lease(asked, tick) < SHORT_LEASE {
            self.warn(
                &timeout,
                "the lease that is left between two heartbeats is under 2s, so short pauses cost \
                 requests; write a longer time",
            );
        }
    }

    fn upstreams(&mut self, config: &Config) {
        for (index, upstream) in config.upstreams.iter().enumerate() {
            if !config.routes.iter().any(|route| route.upstream == index) {
                self.warn(&["upstreams", &upstream.name], "no route uses this upstream");
            }
            if upstream.request_timeout > LONG_REQUEST {
                self.warn(
                    &["upstreams", &upstream.name, "request_timeout"],
                    "a key is held for as long as its request may take, and over 10m is long",
                );
            }
        }
        let longest = config.upstreams.iter().max_by_key(|upstream| upstream.request_timeout);
        if let Some(longest) = longest.filter(|it| config.drain_timeout <= it.request_timeout) {
            let text = format!(
                "a stop would cut off requests that `upstreams.{}.request_timeout` still allows; \
                 write a longer time",
                longest.name
            );
            self.warn(&["drain_timeout"], &text);
        }
    }

    fn route(&mut self, earlier: &[Route], index: &str, route: &Route) {
        if let Some(first) = earlier.iter().position(|first| first.matching.covers(&route.matching))
        {
            let text = format!(
                "this route can never match: `routes[{first}]` gets all its requests; put this one before it"
            );
            self.warn(&["routes", index, "match"], &text);
        }
    }

    fn idempotency(&mut self, index: &str, rules: &Idempotency) {
        let scope = ["routes", index, "idempotency", "scope"];
        match &rules.scope.source {
            ScopeSource::None => self.warn(
                &scope,
                "all callers share their keys and get each other's answers; name a header that \
                 identifies the caller unless there is only one",
            ),
            ScopeSource::Headers(headers) if headers.contains(&AUTHORIZATION) => self.warn(
                &scope,
                "a retry after its token was refreshed is a new key; name a header that stays \
                 the same",
            ),
            ScopeSource::Headers(_) => {}
        }
        if rules.scope.anonymous {
            self.warn(
                &["routes", index, "idempotency", "scope_missing"],
                "callers who lack a header of the scope share their keys and get each other's \
                 answers; write `reject`",
            );
        }
        if let InProgress::Wait(wait) = rules.in_progress
            && wait > LONG_WAIT
        {
            self.warn(
                &["routes", index, "idempotency", "in_progress", "wait"],
                "clients and load balancers give up earlier; write 80s or less",
            );
        }
    }

    /// What lets a second execution, or a different request, pass as a retry.
    fn comparison(&mut self, index: &str, rules: &Idempotency) {
        if let UnknownOutcome::Retry { attempts } = rules.unknown_outcome {
            let text = format!(
                "an operation may run up to {attempts} times unless the upstream checks \
                 `Idempotency-Fencing-Token`; write `reject` where running twice would cost"
            );
            self.warn(&["routes", index, "idempotency", "unknown_outcome"], &text);
        }
        if rules.fingerprint.body == BodyMode::None {
            self.warn(
                &["routes", index, "idempotency", "fingerprint", "body"],
                "a key with another body gets the first answer instead of a refusal; write `raw` \
                 or `json`",
            );
        }
    }

    /// How long a key is remembered, against how long its request may take.
    fn lives(&mut self, index: &str, rules: &Idempotency, upstream: &Upstream) {
        let retention = ["routes", index, "idempotency", "retention"];
        let (completed, unknown) = (rules.retention.completed, rules.retention.unknown);
        for (field, life) in [("completed", Some(completed)), ("unknown", unknown)] {
            if life.is_some_and(|life| life < upstream.request_timeout) {
                let text = format!(
                    "shorter than `upstreams.{}.request_timeout`: a client that waits for that \
                     long and then retries runs the request again; write a longer time",
                    upstream.name
                );
                self.warn(&[&retention[..], &[field]].concat(), &text);
            }
        }
        if unknown.is_some_and(|unknown| unknown < completed) {
            self.warn(
                &[&retention[..], &["unknown"]].concat(),
                "a key whose outcome is unknown is forgotten, and can run again, before an answer \
                 would be; write at least what `completed` says",
            );
        }
    }

    /// A timeout or a failure of the server does not say that nothing ran.
    fn releases(&mut self, index: &str, table: &Responses) {
        let exact = table.exact.iter().map(|(status, it)| (status.as_u16().to_string(), *it));
        let classes = table.classes.iter().map(|(class, it)| (format!("{class}xx"), *it));
        for (status, disposition) in exact.chain(classes) {
            let covers_timeout =
                status == "4xx" && !table.exact.contains_key(&StatusCode::REQUEST_TIMEOUT);
            let is_unsure = status == "408" || status.starts_with('5') || covers_timeout;
            if disposition == Disposition::Release && is_unsure {
                let what = if covers_timeout { "a 408" } else { "such an answer" };
                let text = format!(
                    "{what} does not say that nothing ran: a retry may run the request twice; \
                     write `unknown`"
                );
                self.warn(&["routes", index, "idempotency", "responses", &status], &text);
            }
        }
    }

    fn namespace(&mut self, earlier: &[Route], index: &str, rules: &Idempotency) {
        let path = ["routes", index, "idempotency", "namespace"];
        if find(self.tree, &path).is_none() {
            self.warn(
                &path,
                "the namespace is the route's name, so a new name would make every key a new one; \
                 write `namespace`",
            );
        }
        let sharer = earlier.iter().position(|route| {
            route.idempotency.as_ref().is_some_and(|other| {
                other.namespace == rules.namespace
                    && (other.header != rules.header || other.scope != rules.scope)
            })
        });
        if let Some(sharer) = sharer {
            let text = format!(
                "`routes[{sharer}]` has this namespace with another `header` or `scope`, so one \
                 operation can have two keys; write another namespace"
            );
            self.warn(&path, &text);
        }
    }
}

/// Whether a name in capitals follows a `$`, as references of a shell do. Within a word it is
/// rather a part of a random secret.
fn holds_bare_reference(written: &str) -> bool {
    written.match_indices('$').any(|(at, _)| {
        let is_start = !written[..at].ends_with(|last: char| last.is_alphanumeric());
        is_start && written[at + 1..].starts_with(|first: char| first.is_ascii_uppercase())
    })
}

/// The node at `path`, and where to point at for it.
fn find<'a>(tree: &'a Node, path: &[&str]) -> Option<(&'a Node, Span)> {
    path.iter().try_fold((tree, tree.span), |(node, _), step| match &node.kind {
        Kind::Mapping(entries) => {
            let entry = entries.iter().find(|entry| entry.key == *step)?;
            Some((&entry.value, entry.span()))
        }
        Kind::Sequence(items) => {
            let item = items.get(step.parse::<usize>().ok()?)?;
            Some((item, item.span))
        }
        Kind::Scalar(_) | Kind::Mistaken => None,
    })
}

/// The place of `path`, or of the innermost part of it that is there.
fn place_of(tree: &Node, path: &[&str]) -> Span {
    let parts = (0..=path.len()).rev();
    let found = parts.into_iter().find_map(|length| find(tree, &path[..length]));
    found.map_or(tree.span, |(_, span)| span)
}
