//! Which header fields pass through the gateway, which end here, and which it adds.
//!
//! Order matters on the way in: [`connection_names`] and [`strip_request`] come before anything
//! reads key or scope; what the gateway adds comes after. Nothing here allocates for a message
//! that has none of the fields in question.

mod forwarded;
mod hop;
mod ours;
mod request_id;
mod storable;
#[cfg(test)]
mod tests;

pub use self::{
    forwarded::{Peer, forwarded_by, host_from_target, via},
    hop::{Upgrade, connection_names, strip_request, strip_response},
    ours::{IDEMPOTENCY_ATTEMPT, IDEMPOTENCY_ERROR_SOURCE, IDEMPOTENCY_EXPIRES},
    ours::{IDEMPOTENCY_FENCING_TOKEN, add_attempt, strip_forged},
    request_id::{REQUEST_ID, request_id},
    storable::storable,
};
