//! Gateways that share a root of their own in the ensemble.

use std::{collections::BTreeMap, net::SocketAddr, sync::Mutex};

use http::{HeaderMap, HeaderName};
use oncegate::domain::{IdempotencyKey, KeyFormat, KeyId, KeyRules, Scope, ScopeRule, ScopeSource};

use super::{Ensemble, Link, Node, Peer};
use crate::shared::{Gateway, Home};

/// A root, and what all gateways on it are configured to.
pub(crate) struct Deployment {
    pub(crate) ensemble: Ensemble,
    pub(crate) root: String,
    endpoint: SocketAddr,
    /// The folders of the gateways, which outlive them.
    homes: Mutex<Vec<Home>>,
    session_timeout: &'static str,
    sessions: usize,
    rules: String,
    limits: &'static str,
    upstream: &'static str,
    ledger: &'static str,
    admin: &'static str,
    top: &'static str,
    zookeeper: String,
}

/// One gateway before its start.
pub(crate) struct Plan<'a> {
    deployment: &'a Deployment,
    servers: Vec<SocketAddr>,
    endpoint: SocketAddr,
    zookeeper: String,
}

// === impl Deployment ===

impl Deployment {
    /// On servers that other tests use, too.
    pub(crate) async fn to(endpoint: SocketAddr) -> Self {
        Self::on(Ensemble::shared().await, endpoint)
    }

    /// On servers that this test may break.
    pub(crate) async fn alone(endpoint: SocketAddr) -> Self {
        Self::on(Ensemble::alone().await, endpoint)
    }

    pub(crate) fn on(ensemble: Ensemble, endpoint: SocketAddr) -> Self {
        Self {
            ensemble,
            root: format!("/dedup-{}", uuid::Uuid::new_v4().simple()),
            endpoint,
            homes: Mutex::default(),
            session_timeout: "6s",
            sessions: 1,
            rules: "scope: [X-Api-Key]".into(),
            limits: "",
            upstream: "",
            ledger: "",
            admin: "",
            top: "",
            zookeeper: String::new(),
        }
    }

    pub(crate) fn session_timeout(self, session_timeout: &'static str) -> Self {
        Self { session_timeout, ..self }
    }

    pub(crate) fn sessions(self, sessions: usize) -> Self {
        Self { sessions, ..self }
    }

    /// More fields of the keyed route's `idempotency`.
    pub(crate) fn rules(self, fields: &str) -> Self {
        Self { rules: format!("{}, {fields}", self.rules), ..self }
    }

    pub(crate) fn limits(self, limits: &'static str) -> Self {
        Self { limits, ..self }
    }

    /// More fields of the upstream.
    pub(crate) fn upstream(self, upstream: &'static str) -> Self {
        Self { upstream, ..self }
    }

    /// More fields of `ledger`.
    pub(crate) fn ledger(self, ledger: &'static str) -> Self {
        Self { ledger, ..self }
    }

    /// More fields of `admin`.
    pub(crate) fn admin(self, admin: &'static str) -> Self {
        Self { admin, ..self }
    }

    /// More lines of the top level.
    pub(crate) fn top(self, top: &'static str) -> Self {
        Self { top, ..self }
    }

    /// One more line of `ledger.zookeeper`.
    pub(crate) fn zookeeper(self, line: &str) -> Self {
        Self { zookeeper: line.into(), ..self }
    }

    /// One more gateway, not yet started.
    pub(crate) fn plan(&self) -> Plan<'_> {
        let servers = self.ensemble.servers().to_vec();
        let zookeeper = self.zookeeper.clone();
        Plan { deployment: self, servers, endpoint: self.endpoint, zookeeper }
    }

    pub(crate) async fn gateway(&self) -> Gateway {
        self.plan().start().await
    }

    pub(crate) async fn gateway_via(&self, link: &Link) -> Gateway {
        self.plan().via(link).start().await
    }

    /// The node of this key of `alice`.
    pub(crate) fn path(&self, key: &str) -> String {
        let scope = HeaderName::from_static("x-api-key");
        let name = HeaderName::from_static("idempotency-key");
        let headers = HeaderMap::from_iter([
            (scope.clone(), "alice-secret".parse().unwrap()),
            (name.clone(), key.parse().unwrap()),
        ]);
        let rule = ScopeRule { source: ScopeSource::Headers(vec![scope]), anonymous: false };
        let scope = Scope::read(&headers, &rule).unwrap();
        let rules = KeyRules { max_length: 255, format: KeyFormat::Any };
        let key = IdempotencyKey::read(&headers, &name, rules).unwrap().unwrap();
        let id = KeyId::new(None, "charges", &scope, &key).to_string();
        format!("{}/{}/{id}", self.root, &id[..2])
    }

    /// The node of what is stored for it.
    pub(crate) fn record(&self, key: &str) -> String {
        format!("{}/record", self.path(key))
    }

    /// The nodes of keys and all below them: what was made at start is left out.
    pub(crate) async fn key_nodes(&self, peer: &mut Peer) -> BTreeMap<String, Node> {
        let mut nodes = peer.tree(&self.root).await;
        nodes.retain(|path, _| {
            let below = &path[self.root.len() + 1..];
            below.contains('/') && !below.starts_with("gateways/")
        });
        nodes
    }

    /// The lock nodes of all keys.
    pub(crate) async fn locks(&self, peer: &mut Peer) -> Vec<String> {
        let nodes = self.key_nodes(peer).await;
        nodes.into_iter().filter(|(_, node)| node.is_ephemeral).map(|(path, _)| path).collect()
    }
}

// === impl Plan ===

impl Plan<'_> {
    /// Reaches the ensemble through `link`.
    pub(crate) fn via(self, link: &Link) -> Self {
        self.at(link.servers())
    }

    /// Takes these for the servers.
    pub(crate) fn at(self, servers: &[SocketAddr]) -> Self {
        Self { servers: servers.to_vec(), ..self }
    }

    /// Has another upstream than the rest.
    pub(crate) fn to(self, endpoint: SocketAddr) -> Self {
        Self { endpoint, ..self }
    }

    /// Has this instead of the deployment's further line of `ledger.zookeeper`.
    pub(crate) fn zookeeper(self, line: &str) -> Self {
        Self { zookeeper: line.into(), ..self }
    }

    pub(crate) async fn start(self) -> Gateway {
        let home = Home::new();
        let gateway = home.start_with(&self.text()).await;
        self.deployment.homes.lock().unwrap().push(home);
        gateway
    }

    /// Of a gateway that must not start: its exit code and what it said.
    pub(crate) async fn fail(self) -> (i32, String) {
        Home::new().fail_with(&self.text()).await
    }

    pub(crate) fn text(&self) -> String {
        let Deployment { root, session_timeout, sessions, .. } = self.deployment;
        let Deployment { rules, limits, upstream, ledger, admin, top, .. } = self.deployment;
        let servers: Vec<_> = self.servers.iter().map(|server| format!("'{server}'")).collect();
        let servers = servers.join(", ");
        let (endpoint, zookeeper) = (self.endpoint, &self.zookeeper);
        format!(
            "
listen: {{ address: '127.0.0.1:0' }}
admin: {{ address: '127.0.0.1:0', {admin} }}
gateway_id: tested
ledger:
  kind: zookeeper
  zookeeper:
    servers: [{servers}]
    root: {root}
    session_timeout: {session_timeout}
    tick_time: 500ms
    sessions: {sessions}
    {zookeeper}
  {ledger}
limits: {{ {limits} }}
upstreams:
  payments: {{ endpoints: ['http://{endpoint}'], {upstream} }}
routes:
  - name: charges
    match: {{ path_prefix: /v1/charges }}
    upstream: payments
    idempotency: {{ {rules} }}
  - name: plain
    match: {{ path_prefix: / }}
    upstream: payments
{top}
"
        )
    }
}
