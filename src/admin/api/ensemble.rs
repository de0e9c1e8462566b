//! What the API says of the servers and sessions behind the ledger.

use std::time::Duration;

use axum::{extract::State, response::Response};
use serde::Serialize;

use super::{Api, answer};
use crate::ledger::{Ensemble, Server, SessionView};

/// The members, in the order in which a person reads them.
#[derive(Serialize)]
struct View {
    ledger: &'static str,
    place: String,
    usable: bool,
    trouble: Option<String>,
    servers: Vec<ServerView>,
    sessions: Vec<Session>,
}

#[derive(Serialize)]
struct ServerView {
    address: String,
    serves: bool,
    mode: Option<String>,
    version: Option<String>,
    round_trip_seconds: Option<f64>,
    trouble: Option<String>,
}

#[derive(Serialize)]
struct Session {
    slot: usize,
    /// As the servers print it.
    id: String,
    state: &'static str,
    timeout_seconds: f64,
    lease_seconds: f64,
    attempts: usize,
}

pub(super) async fn show(State(api): State<Api>) -> Response {
    let view = View::from(api.operator.describe().await);
    answer(serde_json::to_string(&view).expect("names are strings, and nothing in it can fail"))
}

// === impl View ===

impl From<Ensemble> for View {
    fn from(ensemble: Ensemble) -> Self {
        Self {
            ledger: ensemble.kind,
            place: ensemble.place,
            usable: ensemble.trouble.is_none(),
            trouble: ensemble.trouble,
            servers: ensemble.servers.into_iter().map(ServerView::from).collect(),
            sessions: ensemble.sessions.into_iter().map(Session::from).collect(),
        }
    }
}

// === impl ServerView ===

impl From<Server> for ServerView {
    fn from(server: Server) -> Self {
        Self {
            serves: server.serves(),
            address: server.address,
            mode: server.mode,
            version: server.version,
            round_trip_seconds: server.round_trip.as_ref().map(Duration::as_secs_f64),
            trouble: server.trouble,
        }
    }
}

// === impl Session ===

impl From<SessionView> for Session {
    fn from(session: SessionView) -> Self {
        Self {
            slot: session.slot,
            id: format!("{:#x}", session.id),
            state: match (session.lease.is_zero(), session.is_connected) {
                (true, _) => "lost",
                (false, true) => "connected",
                (false, false) => "suspended",
            },
            timeout_seconds: session.timeout.as_secs_f64(),
            lease_seconds: session.lease.as_secs_f64(),
            attempts: session.attempts,
        }
    }
}
