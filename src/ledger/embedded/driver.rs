//! How operations get into the store: at once, after a fixed time, or through the writer.

use std::{sync::Arc, thread};

use tokio_util::sync::CancellationToken;
#[cfg(test)]
use {
    std::time::Duration,
    tokio::{runtime::Handle, time::sleep},
    tokio_util::task::TaskTracker,
};

use super::{core::Core, operation::Operation, queue::Queue, writer};

#[derive(Debug)]
pub(super) enum Driver {
    /// In the caller's own time, for a store that cannot fail and costs next to nothing.
    Inline,
    /// For tests: each operation is applied after `latency` of tokio's clock and answered after
    /// `latency` again, so that a sweep over all moments finds every order.
    #[cfg(test)]
    Delayed {
        latency: Duration,
        runtime: Handle,
        tasks: TaskTracker,
    },
    Thread {
        queue: Arc<Queue>,
        finished: CancellationToken,
    },
}

// === impl Driver ===

impl Driver {
    #[cfg(test)]
    pub(super) fn delayed(latency: Duration) -> Self {
        Self::Delayed { latency, runtime: Handle::current(), tasks: TaskTracker::new() }
    }

    pub(super) fn thread() -> Self {
        Self::Thread { queue: Arc::default(), finished: CancellationToken::new() }
    }

    pub(super) fn start(core: &Arc<Core>) -> std::io::Result<()> {
        let Self::Thread { queue, finished } = &core.driver else { return Ok(()) };
        let (core, queue) = (Arc::clone(core), Arc::clone(queue));
        // Cancelled even if the thread panics: nobody waits for it in vain.
        let finished = finished.clone().drop_guard();
        thread::Builder::new().name("ledger-writer".to_owned()).spawn(move || {
            writer::run(&core, &queue);
            drop(finished);
        })?;
        Ok(())
    }

    pub(super) fn submit(&self, core: &Arc<Core>, operation: Operation) {
        match self {
            Self::Inline => apply(core, operation, Operation::complete),
            #[cfg(test)]
            Self::Delayed { latency, runtime, tasks } => {
                let (core, latency) = (Arc::clone(core), *latency);
                let work = async move {
                    sleep(latency).await;
                    let mut applied = None;
                    apply(&core, operation, |operation, _| applied = Some(operation));
                    sleep(latency).await;
                    if let Some(operation) = applied {
                        operation.complete(&core);
                    }
                };
                drop(tasks.spawn_on(work, runtime));
            }
            Self::Thread { queue, .. } => queue.push(operation),
        }
    }

    /// What a look into the store takes.
    #[cfg(test)]
    pub(super) async fn look_latency(&self) {
        match self {
            Self::Delayed { latency, .. } => sleep(*latency).await,
            Self::Inline | Self::Thread { .. } => {}
        }
    }

    /// A reader met an error.
    pub(super) fn suspect(&self) {
        match self {
            Self::Thread { queue, .. } => queue.suspect(),
            Self::Inline => {}
            #[cfg(test)]
            Self::Delayed { .. } => {}
        }
    }

    /// Lets what was submitted be done, and then lets go of everything, even if nobody waits.
    pub(super) fn close(&self) {
        match self {
            Self::Inline => {}
            #[cfg(test)]
            Self::Delayed { tasks, .. } => drop(tasks.close()),
            Self::Thread { queue, .. } => queue.close(),
        }
    }

    pub(super) async fn closed(&self, core: &Core) {
        match self {
            Self::Inline => core.let_go(),
            #[cfg(test)]
            Self::Delayed { tasks, .. } => {
                tasks.wait().await;
                core.let_go();
            }
            Self::Thread { finished, .. } => finished.cancelled().await,
        }
    }
}

/// Into a store that is always there, then `then`.
fn apply(core: &Arc<Core>, operation: Operation, then: impl FnOnce(Operation, &Arc<Core>)) {
    if core.over().is_cancelled() || !operation.is_wanted() {
        return;
    }
    match core.store.apply(&mut std::iter::once(&operation.change), core.mark()) {
        Ok(()) => then(operation, core),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "operation was not applied");
        }
    }
    if let Err(error) = core.sweeper.step(core) {
        tracing::error!(error = &error as &dyn std::error::Error, "sweep failed");
    }
}
