//! A change on its way to the store, and who is told once it is durable.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{core::Core, held::HeldKey, store::Change, table::Claim};
use crate::{
    domain::{Cause, Intent},
    ledger::{Ended, Gate, Hold},
};

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) change: Change,
    /// Whether a transaction with it was tried, so that it may be durable already.
    pub(super) tried: bool,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    Begin { opening: Opening, owner: oneshot::Sender<Hold> },
    End { claim: Claim, ended: Ended, done: oneshot::Sender<Ended> },
}

/// All that a hold is made of once the intent is durable.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) claim: Claim,
    pub(super) intent: Intent,
    /// Of the attempt that is taken over.
    pub(super) earlier_cause: Option<Cause>,
}

// === impl Operation ===

impl Operation {
    pub(super) fn begin(change: Change, opening: Opening) -> (Self, oneshot::Receiver<Hold>) {
        let (owner, receiver) = oneshot::channel();
        (Self { change, tried: false, answer: Answer::Begin { opening, owner } }, receiver)
    }

    pub(super) fn end(
        change: Change,
        claim: Claim,
        ended: Ended,
    ) -> (Self, oneshot::Receiver<Ended>) {
        let (done, receiver) = oneshot::channel();
        (Self { change, tried: false, answer: Answer::End { claim, ended, done } }, receiver)
    }

    /// False for the begin of a caller that is gone, as long as it surely left no trace. Once
    /// tried it is carried through, and its hold released.
    pub(super) fn is_wanted(&self) -> bool {
        match &self.answer {
            Answer::Begin { owner, .. } => self.tried || !owner.is_closed(),
            Answer::End { .. } => true,
        }
    }

    pub(super) fn is_end(&self) -> bool {
        match &self.answer {
            Answer::Begin { .. } => false,
            Answer::End { .. } => true,
        }
    }

    /// The change is durable.
    pub(super) fn complete(self, core: &Arc<Core>) {
        match self.answer {
            Answer::Begin { opening: Opening { claim, intent, earlier_cause }, owner } => {
                // Nobody is compared with a request whose caller is gone and that never ran.
                if !owner.is_closed() {
                    claim.hold(intent.fingerprint.clone());
                }
                let (token, attempt) = (intent.token, intent.attempt);
                let held = HeldKey::new(Arc::clone(core), claim, intent, earlier_cause);
                let gate = Gate::new(Some(core.lease()));
                // If the caller is gone the hold is dropped here or in the channel, and so
                // releases the key.
                drop(owner.send(Hold::new(token, attempt, gate, Box::new(held))));
            }
            Answer::End { claim, ended, done } => {
                // Free before the answer: who is answered may begin again at once.
                drop(claim);
                drop(done.send(ended));
            }
        }
    }
}
