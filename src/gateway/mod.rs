//! HTTP: what comes in, what goes upstream, and what is answered.

mod announce;
mod body;
mod gather;
pub mod headers;
pub mod idempotency;
mod observe;
mod path;
pub mod problem;
pub mod proxy;
mod refusal;
mod request_id;
mod route;
mod stack;
mod timed;

pub use self::{
    body::ResponseBody,
    idempotency::{Idempotency, IdempotencyLayer},
    observe::ObservedBody,
    request_id::RequestId,
    route::Match,
    stack::{Gateway, GatewayBody, Route},
};
