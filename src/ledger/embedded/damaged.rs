//! Keys whose pages could not be read, not even after the file was opened again.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::domain::KeyId;

/// How long a key is refused without a look. A look at a bad sector fails the whole file, which
/// then has to be opened again for everybody.
const REFUSED: Duration = Duration::from_secs(30);

/// More than that is not a matter of single keys.
const MOST: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Damaged {
    /// Whether there is any: nearly always there is none, and nobody takes the lock.
    any: AtomicBool,
    keys: Mutex<HashMap<KeyId, Instant>>,
}

// === impl Damaged ===

impl Damaged {
    /// Refuses `key` for a while, unless too many are refused already.
    pub(super) fn add(&self, key: KeyId) {
        let mut keys = self.keys();
        keys.retain(|_, until| *until > Instant::now());
        if keys.len() < MOST {
            keys.insert(key, Instant::now() + REFUSED);
        }
        self.any.store(true, Ordering::Relaxed);
    }

    pub(super) fn has(&self, key: &KeyId) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let mut keys = self.keys();
        keys.retain(|_, until| *until > Instant::now());
        self.any.store(!keys.is_empty(), Ordering::Relaxed);
        keys.contains_key(key)
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<KeyId, Instant>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
