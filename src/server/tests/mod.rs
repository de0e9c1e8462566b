//! The listener over real sockets: what it serves, refuses and cuts off.

mod deadlines;
mod drain;
mod protocol;
mod refusals;
mod sharing;
mod support;
