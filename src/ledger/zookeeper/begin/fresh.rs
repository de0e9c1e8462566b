//! A key that nobody knows yet: container, lock and intent in one transaction.

use std::sync::Arc;

use tokio::time::sleep;
use zookeeper_client::MultiWriteResult;

use super::{PAUSE, Seeker, Step, again, judge::Opening};
use crate::{
    domain::{AttemptId, Intent},
    ledger::{
        LedgerError,
        codec::encode_readable_intent,
        zookeeper::{
            client::{Op, Operation},
            fault::{Fault, Refusal},
            lock::{self, Lock},
            prepare,
            session::{Live, Session},
            sessions::jitter,
            stored::token,
            undo,
        },
    },
};

// === impl Seeker ===

impl Seeker<'_> {
    /// Container, lock and intent in one transaction, which succeeds for the sole contender only.
    /// `None` if the key's node is there already.
    pub(super) async fn begin_new(&self, session: &Arc<Session>) -> Option<Step> {
        if let Err(overloaded) = session.has_room() {
            return Some(Step::Told(Err(overloaded)));
        }
        let live = session.enter(AttemptId::random());
        let opening = Opening::fresh(self.request, None);
        let intent = self.intent(live.attempt(), &opening);
        let ops = vec![
            Op::CreateContainer { path: self.paths.node.clone() },
            Op::CreateLock {
                prefix: self.paths.lock_prefix(live.attempt()),
                data: self.lock_data(),
            },
            Op::Create {
                path: self.paths.record.clone(),
                data: encode_readable_intent(&intent, None),
            },
        ];
        match session.transact(Operation::MultiBegin, ops).await {
            Ok(results) => Some(self.begun(live, &intent, &results)),
            Err(Fault::Refused { index: 0, refusal: Refusal::NodeExists }) => None,
            Err(Fault::Refused { index: 0, refusal: Refusal::NoNode }) => {
                // An operator, or another tool, took the shard away.
                let shard = prepare::create(&session.client, &self.paths.shard).await;
                Some(shard.map_or_else(|fault| again(&fault), |()| Step::Again))
            }
            Err(Fault::InDoubt(_)) => Some(self.find_new(live, intent).await),
            Err(fault) => Some(again(&fault)),
        }
    }

    fn begun(&self, live: Live, intent: &Intent, results: &[MultiWriteResult]) -> Step {
        // Servers before 3.8.2 tell the transaction in the container's stat only.
        let mut zxid = None;
        let mut lock = None;
        for result in results {
            if let MultiWriteResult::Create { path, stat } = result {
                if !stat.is_invalid() {
                    zxid = zxid.or(Some(stat.czxid));
                }
                if path.starts_with(&self.paths.lock_prefix(live.attempt())) {
                    lock = Some(path.clone());
                }
            }
        }
        let (Some(zxid), Some(path)) = (zxid, lock) else {
            undo::start(self.core, self.request.key, live);
            return Step::Told(Err(self.core.unavailable()));
        };
        let Some(lock) = Lock::new(live, path) else {
            return Step::Told(Err(self.core.unavailable()));
        };
        let intent = Intent { token: token(zxid), ..intent.clone() };
        self.own(lock, intent, 0, None)
    }

    /// After a lost reply.
    async fn find_new(&self, live: Live, intent: Intent) -> Step {
        let Some(found) = lock::find(&live, self.paths).await else {
            undo::start(self.core, self.request.key, live);
            return Step::Told(Err(LedgerError::SessionLostBeginning));
        };
        let Some(path) = found else { return Step::Again };
        loop {
            match live.session().client.get(&self.paths.record).await {
                Ok((_, stat)) => {
                    let intent = Intent { token: token(stat.mzxid), ..intent };
                    let Some(lock) = Lock::new(live, path) else { return Step::Again };
                    return self.own(lock, intent, stat.version, None);
                }
                Err(fault) if live.session().lost.is_cancelled() => {
                    undo::start(self.core, self.request.key, live);
                    tracing::debug!(%fault, "begin in doubt at the end of its session");
                    return Step::Told(Err(LedgerError::SessionLostBeginning));
                }
                // Someone deleted it by hand.
                Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => {
                    if let Some(lock) = Lock::new(live, path) {
                        lock.leave(self.core).await;
                    }
                    return Step::Again;
                }
                Err(_) => sleep(jitter(PAUSE)).await,
            }
        }
    }
}
