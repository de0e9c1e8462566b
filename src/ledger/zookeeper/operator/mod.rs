//! What an operator sees of the keys in the ensemble, and how a decision is made.

mod decide;
mod force;
mod list;

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use self::decide::Turn;
use super::{
    ZooKeeper, census,
    core::{Core, closed},
    fault::Fault,
    paths,
    session::Session,
    stored::Found,
};
use crate::{
    domain::{KeyId, Record, StoredResponse},
    ledger::{
        BoxFuture, DecideError, Ensemble, Entry, LedgerError, ListError, Operator, Page, Query,
        codec::Stored,
    },
};

impl Operator for ZooKeeper {
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Page, ListError>> {
        Box::pin(list::list(&self.core, query))
    }

    fn show(&self, key: KeyId) -> BoxFuture<'_, Result<Option<Entry>, LedgerError>> {
        Box::pin(async move {
            let session = fresh_session(&self.core, &key).await?;
            look(&self.core, &session, key).await
        })
    }

    fn resolve(
        &self,
        key: KeyId,
        answer: StoredResponse,
    ) -> BoxFuture<'_, Result<Arc<Record>, DecideError>> {
        self.decided(async move |core, turn| decide::resolve(&core, turn, answer).await, key)
    }

    fn release(&self, key: KeyId) -> BoxFuture<'_, Result<(), DecideError>> {
        self.decided(async move |core, turn| decide::release(&core, turn).await, key)
    }

    fn force(&self, key: KeyId, longest_call: Duration) -> BoxFuture<'_, Result<(), DecideError>> {
        Box::pin(force::force(&self.core, key, longest_call))
    }

    fn describe(&self) -> BoxFuture<'_, Ensemble> {
        Box::pin(async {
            let settings = &self.core.settings;
            Ensemble {
                kind: "zookeeper",
                place: format!("{} below {}", settings.servers.join(","), settings.root),
                trouble: self.core.health().err().map(|error| error.to_string()),
                servers: census::look(&self.core).await,
                sessions: census::sessions(&self.core),
            }
        })
    }
}

impl ZooKeeper {
    /// Runs a decision in a task of its own: it is done or undone, whoever waits.
    fn decided<T: Send + 'static, F>(
        &self,
        decide: impl FnOnce(Arc<Core>, Turn) -> F + Send + 'static,
        key: KeyId,
    ) -> BoxFuture<'_, Result<T, DecideError>>
    where
        F: Future<Output = Result<T, DecideError>> + Send + 'static,
    {
        let (done, told) = tokio::sync::oneshot::channel();
        let core = Arc::clone(&self.core);
        self.core.spawn_end(async move {
            let decided = match decide::turn(&core, key).await {
                Ok(turn) => decide(Arc::clone(&core), turn).await,
                Err(error) => Err(error),
            };
            drop(done.send(decided));
        });
        Box::pin(async move { told.await.unwrap_or_else(|_dropped| Err(closed().into())) })
    }
}

/// A session that shows nothing older than this call.
async fn fresh_session(core: &Core, key: &KeyId) -> Result<Arc<Session>, LedgerError> {
    if core.closing.is_cancelled() {
        return Err(closed());
    }
    let until = Instant::now() + core.settings.timeout;
    let session = core.sessions.usable_until(key, until).await;
    let session = session.ok_or_else(|| core.unavailable())?;
    match timeout_at(until, session.barrier()).await {
        Ok(true) => Ok(session),
        Ok(false) | Err(_) => Err(core.unavailable()),
    }
}

/// What is known of a key; `None` when it is absent.
async fn look(core: &Core, session: &Session, key: KeyId) -> Result<Option<Entry>, LedgerError> {
    let paths = core.layout.key(&key);
    let until = Instant::now() + core.settings.timeout;
    while Instant::now() < until {
        let looked = session.client.look(&paths.record, &paths.node).await;
        let looked = looked.map_err(|fault| unavailable(&fault))?;
        if !looked.is_of_one_moment() {
            continue;
        }
        let Some(found) = looked.after else { return Ok(None) };
        let written_at = core.time().at(found.1.mtime);
        let found = Found::read(found, core.time())?;
        let children = looked.children.unwrap_or_default();
        return Ok(match found.stored {
            Stored::Intent { intent, .. }
                if paths::find_own(&children, intent.attempt_id).is_some() =>
            {
                Some(Entry::in_progress(key, intent))
            }
            _ if found.is_expired => None,
            Stored::Completed(record) => Some(Entry::completed(key, &record)),
            Stored::Intent { intent, .. } => Some(Entry::unknown(key, intent, Some(written_at))),
        });
    }
    Err(core.unavailable())
}

fn unavailable(fault: &Fault) -> LedgerError {
    LedgerError::Unavailable {
        reason: "the ensemble did not answer as it should".to_owned(),
        source: Some(Arc::new(fault.clone())),
    }
}
