//! Who may use the root, and whether the servers agree about what is in it.

use uuid::Uuid;
use zookeeper_client::{Acl, CreateMode};

use super::{Client, Examination, Silent};
use crate::ledger::{
    Grade,
    zookeeper::{OpenError, fault::Fault},
};

/// Where the examination may write.
pub(super) struct Home {
    /// The start of every name that it gives.
    prefix: String,
}

// === impl Home ===

impl Home {
    pub(super) fn node(&self, name: impl std::fmt::Display) -> String {
        format!("{}-{name}", self.prefix)
    }
}

// === impl Examination ===

impl Examination<'_> {
    /// Whom the servers take us for.
    pub(super) async fn credentials(&mut self, client: &Client) -> Result<(), Silent> {
        if self.settings.auth.is_empty() {
            return Ok(());
        }
        let identities = client.identities().await;
        let detail = match self.answered("credentials", identities)? {
            Ok(users) => {
                let ours = users.iter().filter(|user| user.scheme() != "ip");
                let names: Vec<_> =
                    ours.map(|user| format!("{}:{}", user.scheme(), user.user())).collect();
                format!("accepted as {}", names.join(", "))
            }
            // Before 3.7 a server cannot say.
            Err(_refused) => "accepted".to_owned(),
        };
        self.push(Grade::Good, "credentials", detail);
        Ok(())
    }

    /// Whether a gateway can work below the root; then there is a place to write to.
    pub(super) async fn root(&mut self, client: &Client) -> Result<Option<Home>, Silent> {
        let subject = format!("root {}", self.layout.root());
        let nearest = self.nearest(client).await;
        let nearest = match self.answered(&subject, nearest)? {
            Ok(nearest) => nearest,
            // From 3.9 on, a look needs permission, too.
            Err(fault) => {
                self.push(Grade::Bad, subject, OpenError::reason(&fault).0);
                return Ok(None);
            }
        };
        let is_made = nearest.len() >= self.layout.root().len();
        if is_made && !self.access(client, &subject).await? {
            return Ok(None);
        }
        let base = if nearest == "/" { "" } else { &nearest };
        let home = Home { prefix: format!("{base}/doctor-{}", Uuid::new_v4().simple()) };
        let probe = home.node("root");
        let written = client.create(&probe, b"", CreateMode::Ephemeral).await;
        if let Err(fault) = self.answered(&subject, written)? {
            self.push(Grade::Bad, subject, OpenError::reason(&fault).0);
            return Ok(None);
        }
        let detail = if is_made {
            "can be written to".to_owned()
        } else {
            format!("is not there yet; the first gateway can make it below {nearest}")
        };
        self.push(Grade::Good, subject, detail);
        self.agreement(&probe).await?;
        let deleted = client.delete(&probe).await;
        drop(self.answered("root", deleted)?);
        Ok(Some(home))
    }

    /// Where gateways announce themselves, or the nearest node above it that exists.
    async fn nearest(&self, client: &Client) -> Result<String, Fault> {
        let mut path = self.layout.gateways();
        while !path.is_empty() {
            if client.exists(&path).await?.is_some() {
                return Ok(path);
            }
            path.truncate(path.rfind('/').unwrap_or_default());
        }
        Ok("/".to_owned())
    }

    /// Whether others are kept out, and we are not.
    async fn access(&mut self, client: &Client, root: &str) -> Result<bool, Silent> {
        let acl = client.acl(self.layout.root()).await;
        let (grade, detail) = match self.answered(root, acl)? {
            Err(fault) => {
                self.push(Grade::Bad, root, OpenError::reason(&fault).0);
                return Ok(false);
            }
            Ok(acl) if !is_open(&acl) => {
                (Grade::Good, format!("the root is closed to others: {}", described(&acl)))
            }
            Ok(_) if self.settings.auth.is_empty() => (
                Grade::Doubtful,
                "whoever reaches the servers can read stored answers and change them; set \
                 ledger.zookeeper.auth"
                    .to_owned(),
            ),
            Ok(acl) => (
                Grade::Doubtful,
                format!(
                    "the root is open to others ({}), so it was made without \
                     ledger.zookeeper.auth; close it in zkCli: `addauth digest USER:PASSWORD`, then `setAcl -R {} auth::cdrwa`",
                    described(&acl),
                    self.layout.root()
                ),
            ),
        };
        self.push(grade, "access", detail);
        Ok(true)
    }

    /// Whether each server has what was written through the first.
    async fn agreement(&mut self, probe: &str) -> Result<(), Silent> {
        let others: Vec<_> = self.sessions.iter().skip(1).collect();
        let mut strangers = Vec::new();
        for session in &others {
            let seen = async {
                session.client.sync(probe).await?;
                session.client.exists(probe).await
            };
            // One that fails meanwhile disagrees with nobody.
            if let Ok(None) = seen.await {
                strangers.push(session.server.clone());
            }
        }
        if !strangers.is_empty() {
            let detail = format!(
                "{} does not have what was written through {}: these are different ensembles, and \
                 a key could run once in each; list servers of one only",
                strangers.join(", "),
                self.sessions[0].server
            );
            self.push(Grade::Bad, "agreement", detail);
        } else if !others.is_empty() {
            self.push(Grade::Good, "agreement", "all servers have what was written through one");
        }
        Ok(())
    }
}

fn is_open(acl: &[Acl]) -> bool {
    acl.iter().any(|entry| entry.scheme() == "world")
}

/// Never the hash of a password.
fn described(acl: &[Acl]) -> String {
    let name = |entry: &Acl| {
        let user = entry.id().split(':').next().unwrap_or_default();
        format!("{}:{user}", entry.scheme())
    };
    acl.iter().map(name).collect::<Vec<_>>().join(", ")
}
