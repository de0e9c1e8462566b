//! Promises of this room, over real sockets and a scripted upstream.

mod balance;
mod exchange;
mod failure;
mod first_byte;
mod keep_alive;
mod race;
mod streaming;
mod support;
mod upgrade;
