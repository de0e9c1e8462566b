//! How many requests may be in flight, over all and per caller.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::domain::Scope;

/// Counts requests in flight and refuses at once when there are too many: a queued retry is what
/// its client sends again.
#[derive(Clone, Debug)]
pub struct Permits(Arc<Inner>);

struct Inner {
    max: AtomicUsize,
    max_per_scope: AtomicUsize,
    taken: AtomicUsize,
    per_scope: [Mutex<HashMap<Scope, usize>>; SHARDS],
}

/// Two cores and short sections: a few shards keep callers out of each other's way.
const SHARDS: usize = 16;

/// The right to be in flight, given back on drop.
#[derive(Debug)]
pub struct Permit {
    permits: Permits,
    scope: Option<Scope>,
}

/// Which bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    All,
    Scope,
}

// === impl Permits ===

impl Permits {
    pub fn new(max: usize, max_per_scope: usize) -> Self {
        Self(Arc::new(Inner {
            max: AtomicUsize::new(max),
            max_per_scope: AtomicUsize::new(max_per_scope),
            taken: AtomicUsize::new(0),
            per_scope: Default::default(),
        }))
    }

    /// Changes the bounds for what comes; who is in flight stays.
    pub fn resize(&self, max: usize, max_per_scope: usize) {
        self.0.max.store(max, Ordering::Relaxed);
        self.0.max_per_scope.store(max_per_scope, Ordering::Relaxed);
    }

    /// Takes a permit; with a `scope`, one of that caller's too.
    pub fn take(&self, scope: Option<Scope>) -> Result<Permit, Full> {
        let max = self.0.max.load(Ordering::Relaxed);
        let taken = self.0.taken.fetch_add(1, Ordering::Relaxed);
        // From here on a drop gives back what was counted.
        let mut permit = Permit { permits: self.clone(), scope: None };
        if taken >= max {
            return Err(Full::All);
        }
        if let Some(scope) = scope {
            let max = self.0.max_per_scope.load(Ordering::Relaxed);
            let mut counts = self.0.shard(&scope);
            let count = counts.entry(scope).or_default();
            if *count >= max {
                return Err(Full::Scope);
            }
            *count += 1;
            permit.scope = Some(scope);
        }
        Ok(permit)
    }

    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }
}

// === impl Inner ===

impl Inner {
    fn shard(&self, scope: &Scope) -> std::sync::MutexGuard<'_, HashMap<Scope, usize>> {
        let shard = usize::from(scope.as_bytes()[0]) % SHARDS;
        self.per_scope[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits").field("taken", &self.taken).finish_non_exhaustive()
    }
}

// === impl Permit ===

impl Drop for Permit {
    fn drop(&mut self) {
        let inner = &self.permits.0;
        inner.taken.fetch_sub(1, Ordering::Relaxed);
        let Some(scope) = self.scope else { return };
        let mut counts = inner.shard(&scope);
        if let Some(count) = counts.get_mut(&scope) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&scope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::domain::{ScopeRule, ScopeSource};

    fn scope(value: &'static str) -> Scope {
        let name = HeaderName::from_static("x-api-key");
        let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(value))]);
        let rule = ScopeRule { source: ScopeSource::Headers(vec![name]), anonymous: false };
        Scope::read(&headers, &rule).unwrap()
    }

    #[test]
    fn one_caller_over_its_bound_does_not_take_from_the_others() {
        let permits = Permits::new(3, 1);
        let first = permits.take(Some(scope("a"))).unwrap();
        assert_eq!(permits.take(Some(scope("a"))).unwrap_err(), Full::Scope);
        let _second = permits.take(Some(scope("b"))).unwrap();
        let _third = permits.take(None).unwrap();
        assert_eq!(permits.take(None).unwrap_err(), Full::All);
        drop(first);
        assert!(permits.take(Some(scope("a"))).is_ok());
    }

    #[test]
    fn a_refused_request_leaves_no_trace() {
        let permits = Permits::new(0, 0);
        assert!(permits.take(None).is_err());
        assert_eq!(permits.taken(), 0);
    }
}
