//! The one answer to "may a byte of this attempt have gone upstream?".

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Passed by the first byte of an attempt on its way upstream.
///
/// Clones are the same gate: the [`Hold`](super::Hold) keeps one and so knows how the attempt
/// would end if it were dropped now; the one who writes to the upstream keeps another.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Inner>);

struct Inner {
    passed: AtomicBool,
    lease: Option<Arc<dyn Lease>>,
}

/// For how long an attempt's lock is surely ours.
pub trait Lease: fmt::Debug + Send + Sync {
    /// Whether it runs at this moment. Cheap: asked inside the first write of each request.
    fn is_running(&self) -> bool;
}

/// The lease is over: the key may be another's, so nothing may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease on the key is over")]
pub struct Lapsed;

// === impl Gate ===

impl Gate {
    /// A gate that only a running `lease` opens; without one it always opens.
    pub fn new(lease: Option<Arc<dyn Lease>>) -> Self {
        Self(Arc::new(Inner { passed: AtomicBool::new(false), lease }))
    }

    /// Call right before the first byte is written: from here on the attempt may have run.
    pub fn open(&self) -> Result<(), Lapsed> {
        // Marked first and asked second: a task that is dropped between the two says "unknown".
        self.0.passed.store(true, Ordering::SeqCst);
        if self.0.lease.as_ref().is_none_or(|lease| lease.is_running()) {
            return Ok(());
        }
        self.0.passed.store(false, Ordering::SeqCst);
        Err(Lapsed)
    }

    /// Takes `open` back. Only for the one that knows that not one byte was written.
    pub fn nothing_written(&self) {
        self.0.passed.store(false, Ordering::SeqCst);
    }

    /// Whether the upstream may have seen a byte.
    pub fn is_passed(&self) -> bool {
        self.0.passed.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("passed", &self.passed).finish_non_exhaustive()
    }
}
