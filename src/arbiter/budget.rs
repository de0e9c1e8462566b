//! A bound on the bytes of bodies held at once.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Bytes that may be held; clones share one bound.
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

struct Inner {
    max: AtomicU64,
    held: AtomicU64,
}

/// Bytes reserved from a [`Budget`], given back on drop.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: u64,
}

/// The budget has no room for a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

// === impl Budget ===

impl Budget {
    pub fn new(max: u64) -> Self {
        Self(Arc::new(Inner { max: AtomicU64::new(max), held: AtomicU64::new(0) }))
    }

    /// Changes the bound for what comes.
    pub fn resize(&self, max: u64) {
        self.0.max.store(max, Ordering::Relaxed);
    }

    pub fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed)
    }

    pub fn reserve(&self, bytes: u64) -> Result<Reserved, Exhausted> {
        let max = self.0.max.load(Ordering::Relaxed);
        let fits = |held: u64| held.checked_add(bytes).filter(|&sum| sum <= max);
        match self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(Reserved { budget: self.clone(), bytes }),
            Err(_) => Err(Exhausted),
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("held", &self.held()).finish_non_exhaustive()
    }
}

// === impl Reserved ===

impl Reserved {
    /// Gives back what turned out not to be needed.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.budget.0.held.fetch_sub(surplus, Ordering::Relaxed);
        self.bytes -= surplus;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.0.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_over_the_bound_is_refused_and_takes_nothing() {
        let budget = Budget::new(10);
        let mut held = budget.reserve(8).unwrap();
        assert_eq!(budget.reserve(3).unwrap_err(), Exhausted);
        held.shrink_to(4);
        assert_eq!(budget.held(), 4);
        let _rest = budget.reserve(6).unwrap();
        drop(held);
        assert_eq!(budget.held(), 6);
    }
}
