//! The configuration of one test: a small file that is right, and what the test changes of it.

use std::{fmt::Write as _, net::SocketAddr};

/// A file with one keyed route, `charges` at `/v1/charges`, before a plain one for all else.
///
/// Each field but the endpoints is YAML that is added at its place: fields of a section, separated
/// by commas, or whole lines where the place is the top level or the list of routes.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) endpoints: Vec<SocketAddr>,
    pub(crate) listen: String,
    pub(crate) admin: String,
    pub(crate) ledger: String,
    pub(crate) durability: &'static str,
    pub(crate) limits: String,
    pub(crate) upstream: String,
    /// Of the keyed route, `scope` included.
    pub(crate) rules: String,
    /// Lines of the list of routes, before the two.
    pub(crate) routes: String,
    /// Lines of the top level.
    pub(crate) top: String,
}

// === impl Config ===

impl Config {
    /// With a ledger in memory.
    pub(crate) fn to(endpoint: SocketAddr) -> Self {
        Self::to_all([endpoint])
    }

    pub(crate) fn to_all(endpoints: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            endpoints: endpoints.into_iter().collect(),
            listen: String::new(),
            admin: String::new(),
            ledger: String::new(),
            durability: "memory",
            limits: String::new(),
            upstream: String::new(),
            rules: "scope: [X-Api-Key]".into(),
            routes: String::new(),
            top: String::new(),
        }
    }

    /// With a ledger in the home's file, which survives the process.
    pub(crate) fn durable(self) -> Self {
        Self { durability: "fsync", ..self }
    }

    /// More fields of the keyed route's `idempotency`.
    pub(crate) fn rules(mut self, fields: &str) -> Self {
        self.rules = format!("{}, {fields}", self.rules);
        self
    }

    pub(crate) fn limits(self, fields: &str) -> Self {
        Self { limits: fields.into(), ..self }
    }

    pub(crate) fn listen(self, fields: &str) -> Self {
        Self { listen: fields.into(), ..self }
    }

    pub(crate) fn admin(self, fields: &str) -> Self {
        Self { admin: format!(", {fields}"), ..self }
    }

    pub(crate) fn upstream(self, fields: &str) -> Self {
        Self { upstream: fields.into(), ..self }
    }

    pub(crate) fn ledger(self, fields: &str) -> Self {
        Self { ledger: fields.into(), ..self }
    }

    /// One more route, tried before the others.
    pub(crate) fn route(mut self, fields: &str) -> Self {
        writeln!(self.routes, "  - {{ {fields}, upstream: payments }}").unwrap();
        self
    }

    pub(crate) fn top(mut self, line: &str) -> Self {
        self.top.push_str(line);
        self.top.push('\n');
        self
    }

    /// The file, for a ledger at `path`.
    pub(crate) fn text(&self, path: &str) -> String {
        let endpoints: Vec<_> =
            self.endpoints.iter().map(|endpoint| format!("'http://{endpoint}'")).collect();
        let Self { durability, .. } = self;
        let storage = match *durability {
            "memory" => "durability: memory".to_owned(),
            _ => format!("path: '{path}', durability: {durability}"),
        };
        let lines = [
            format!("listen: {{ address: '127.0.0.1:0', {} }}", self.listen),
            format!("admin: {{ address: '127.0.0.1:0'{} }}", self.admin),
            "gateway_id: tested".into(),
            format!("ledger: {{ kind: embedded, embedded: {{ {storage} }}, {} }}", self.ledger),
            format!("limits: {{ {} }}", self.limits),
            "upstreams:".into(),
            format!("  payments: {{ endpoints: [{}], {} }}", endpoints.join(", "), self.upstream),
            "routes:".into(),
            self.routes.trim_end().into(),
            "  - name: charges".into(),
            "    match: { path_prefix: /v1/charges }".into(),
            "    upstream: payments".into(),
            format!("    idempotency: {{ {} }}", self.rules),
            "  - name: plain".into(),
            "    match: { path_prefix: / }".into(),
            "    upstream: payments".into(),
            self.top.clone(),
        ];
        lines.join("\n")
    }
}
