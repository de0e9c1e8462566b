//! The one thread that writes the file: everything that waits goes into one transaction.

use std::{sync::Arc, thread, time::Duration};

use tokio::time::Instant;

use super::{
    core::Core,
    operation::Operation,
    queue::{Gather, Queue},
    store::StoreError,
};

const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);
const LONGEST_GATHER: Duration = Duration::from_micros(500);

/// Writes until the queue is closed and empty. Not on the runtime's threads: an fsync blocks.
pub(super) fn run(core: &Arc<Core>, queue: &Queue) {
    let mut gather = Gather::default();
    loop {
        let taken = queue.take(core.sweeper.due_in(core.now()), gather);
        let trouble = taken.suspect.then_some(StoreError::Closed);
        if !taken.operations.is_empty() || trouble.is_some() {
            let started = Instant::now();
            let operations = taken.operations.len();
            write(core, queue, taken.operations, trouble);
            // A quarter of a transaction's time, for up to half of its cost to each operation.
            let at_most = (started.elapsed() / 4).min(LONGEST_GATHER);
            gather = Gather { operations: operations + queue.waiting(), at_most };
        } else if taken.closing && queue.seal() {
            break;
        }
        if let Err(error) = core.sweeper.step(core) {
            write(core, queue, Vec::new(), Some(error));
        }
    }
    core.let_go();
}

/// Comes back once all of `operations` are durable, however often the file has to be opened again
/// for that; right away after `trouble`.
fn write(
    core: &Arc<Core>,
    queue: &Queue,
    mut operations: Vec<Operation>,
    mut trouble: Option<StoreError>,
) {
    let mut backoff = FIRST_BACKOFF;
    loop {
        if let Some(error) = trouble.take() {
            core.fail(&error);
            thread::park_timeout(backoff);
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
            operations.append(&mut queue.drain());
            if queue.is_closing() {
                // Only ends are worth waiting for. An intent that is left behind is unknown.
                operations.retain(Operation::is_end);
                if operations.is_empty() {
                    return;
                }
            }
            if let Err(error) = core.store.reopen() {
                operations.retain(Operation::is_wanted);
                trouble = Some(error);
                continue;
            }
        }
        operations.retain(Operation::is_wanted);
        for operation in &mut operations {
            operation.tried = true;
        }
        // Without operations it is a probe: a full disk can be opened, but not written.
        let mut changes = operations.iter().map(|operation| &operation.change);
        match core.store.apply(&mut changes, core.mark()) {
            Ok(()) => break,
            Err(error) => trouble = Some(error),
        }
    }
    core.recover();
    for operation in operations {
        operation.complete(core);
    }
}
