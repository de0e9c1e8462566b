//! The layer that puts [`Idempotency`] around a service.

use std::sync::Arc;

use tower::Layer;

use super::{Idempotency, Settings, Shared};

/// Applies [`Idempotency`] to a service. See the [module docs](super) for its place in a stack.
#[derive(Clone, Debug)]
pub struct IdempotencyLayer {
    shared: Shared,
    settings: Arc<Settings>,
}

// === impl IdempotencyLayer ===

impl IdempotencyLayer {
    pub fn new(shared: Shared, settings: Settings) -> Self {
        Self { shared, settings: Arc::new(settings) }
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Idempotency::new(inner, self.shared.clone(), Arc::clone(&self.settings))
    }
}
