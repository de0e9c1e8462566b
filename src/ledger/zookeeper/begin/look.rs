//! What a key's node shows, and what follows from it for one request.

use std::sync::Arc;

use super::{
    Seeker, Step, again,
    judge::{Verdict, judge},
};
use crate::ledger::{
    Begun,
    zookeeper::{
        client::Looked,
        fault::{Fault, Refusal},
        paths,
        session::Session,
        stored::Found,
        turns::{Busy, Other, Turn},
    },
};

// === impl Seeker ===

impl Seeker<'_> {
    /// One read for a key that is new or completed.
    pub(super) async fn look(&mut self, session: &Arc<Session>) -> Step {
        let first = match session.client.get(&self.paths.record).await {
            Ok(found) => match Found::read(found, self.core.time()) {
                Ok(found) => Some(found),
                Err(unreadable) => return Step::Told(Err(unreadable)),
            },
            Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => None,
            Err(fault) => return again(&fault),
        };
        let mut turn = None;
        if let Some(found) = first {
            if let verdict @ Verdict::Replay(_) = judge(self.request, &[], Some(&found))
                && !verdict.is_final()
                && let Ok(begun) = verdict.told()
            {
                return Step::Told(Ok(begun));
            }
        } else {
            let taken = match self.core.turns.take(self.request.key) {
                Ok(turn) => turn,
                Err(busy) => return self.wait_for(busy).await,
            };
            if let Some(step) = self.begin_new(session).await {
                return step;
            }
            turn = Some(taken);
        }
        self.look_closely(session, turn).await
    }

    /// The key's node is there. No write, unless the key is open to this request.
    async fn look_closely(&mut self, session: &Arc<Session>, turn: Option<Turn>) -> Step {
        let mut is_confirmed = false;
        loop {
            let (children, found) = match self.snapshot(session).await {
                Ok(Some(snapshot)) => snapshot,
                Ok(None) => return Step::Again,
                Err(step) => return step,
            };
            self.core.saw(&self.request.origin.route, paths::contenders(&children));
            let verdict = judge(self.request, &children, found.as_ref());
            if verdict.is_final() && !is_confirmed {
                if !session.barrier().await {
                    return Step::Again;
                }
                is_confirmed = true;
                continue;
            }
            let is_taken = match verdict.told() {
                Ok(begun) => return Step::Told(Ok(begun)),
                Err(Verdict::Held(_)) => true,
                // Someone is about to begin, or holds the lock for reasons of its own.
                Err(_) => found.is_none() && paths::is_contended(&children),
            };
            if is_taken && self.request.wait_until.is_none() {
                return Step::Told(Ok(Begun::InProgress));
            }
            break;
        }
        let turn = match turn {
            Some(turn) => turn,
            None => match self.core.turns.take(self.request.key) {
                Ok(turn) => turn,
                Err(busy) => return self.wait_for(busy).await,
            },
        };
        self.contend(session, turn).await
    }

    async fn wait_for(&mut self, busy: Busy) -> Step {
        let other = tokio::select! {
            other = busy.wait(self.request.wait_until, self.patience) => other,
            () = self.caller.closed() => Other::Waits,
        };
        match other {
            Other::Waits => Step::Told(Ok(Begun::InProgress)),
            Other::Over => {
                self.be_patient();
                Step::Again
            }
        }
    }

    /// The children and the record at one moment; `None` if they changed meanwhile.
    async fn snapshot(
        &self,
        session: &Session,
    ) -> Result<Option<(Vec<String>, Option<Found>)>, Step> {
        let looked = session.client.look(&self.paths.record, &self.paths.node).await;
        let looked = looked.map_err(|fault| again(&fault))?;
        if !looked.is_of_one_moment() {
            return Ok(None);
        }
        let Looked { children: Some(children), after, .. } = looked else { return Ok(None) };
        let found = after.map(|found| Found::read(found, self.core.time())).transpose();
        found.map(|found| Some((children, found))).map_err(|error| Step::Told(Err(error)))
    }
}
