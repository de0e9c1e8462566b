//! A payment API without any protection of its own: each POST charges, whoever sends it again.
//!
//! It counts what it really did. A request's `X-Demo` header tells it to misbehave:
//!
//! | `X-Demo` | what happens                                                       |
//! |----------|--------------------------------------------------------------------|
//! | `slow`   | charges, then takes three seconds to answer                        |
//! | `fail`   | charges, then answers 500                                          |
//! | `cut`    | charges, then the line breaks in the middle of the answer          |
//! | `busy`   | does nothing and answers 503 with `Retry-After`                    |

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body::{Body, Frame};
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, time::sleep};

/// How long `slow` takes.
const SLOW: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, Default)]
struct Charges(Arc<Mutex<Vec<Charge>>>);

/// One execution: money has moved.
#[derive(Clone, Debug, Serialize)]
struct Charge {
    id: String,
    amount: u64,
    currency: String,
    /// What the gateway said of this execution.
    attempt: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Order {
    amount: u64,
    currency: String,
}

/// A body that fails after its first piece.
struct Broken(Option<Bytes>);

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener) {
    let router = Router::new()
        .route("/v1/charges", post(charge).get(list))
        .route("/v1/charges/{id}", get(show))
        .route("/executions", get(count))
        .with_state(Charges::default());
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(error = &error as &dyn std::error::Error, "sample API failed");
    }
}

async fn charge(State(charges): State<Charges>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(order) = serde_json::from_slice::<Order>(&body) else {
        let text = "send JSON like {\"amount\": 1999, \"currency\": \"eur\"}\n";
        return (StatusCode::BAD_REQUEST, text).into_response();
    };
    let told = headers.get("x-demo").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if told == "busy" {
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")]).into_response();
    }
    let charge = charges.execute(order, &headers);
    match told {
        "slow" => sleep(SLOW).await,
        "fail" => return (StatusCode::INTERNAL_SERVER_ERROR, json(&charge)).into_response(),
        "cut" => return cut(),
        _ => {}
    }
    let location = format!("/v1/charges/{}", charge.id);
    (StatusCode::CREATED, [(header::LOCATION, location)], json(&charge)).into_response()
}

async fn list(State(charges): State<Charges>) -> Response {
    json(&charges.all())
}

async fn show(State(charges): State<Charges>, Path(id): Path<String>) -> Response {
    match charges.all().into_iter().find(|charge| charge.id == id) {
        Some(charge) => json(&charge),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn count(State(charges): State<Charges>) -> String {
    format!("{}\n", charges.all().len())
}

/// JSON that ends its line, since it is read in a terminal.
fn json(value: &impl Serialize) -> Response {
    let mut body = serde_json::to_string(value).expect("plain structs are always JSON");
    body.push('\n');
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// An answer that breaks off after its first bytes.
fn cut() -> Response {
    let broken = Broken(Some(Bytes::from_static(b"{\"id\": \"ch_")));
    Response::builder()
        .status(StatusCode::CREATED)
        .header(header::CONTENT_LENGTH, 1000)
        .body(axum::body::Body::new(broken))
        .unwrap_or_default()
}

// === impl Broken ===

impl Body for Broken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(match self.0.take() {
            Some(first) => Ok(Frame::data(first)),
            None => Err(io::ErrorKind::ConnectionAborted.into()),
        }))
    }
}

// === impl Charges ===

impl Charges {
    fn execute(&self, order: Order, headers: &HeaderMap) -> Charge {
        let mut charges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = headers.get("idempotency-attempt").and_then(|value| value.to_str().ok());
        let charge = Charge {
            id: format!("ch_{}", charges.len() + 1),
            amount: order.amount,
            currency: order.currency,
            attempt: attempt.map(str::to_owned),
        };
        charges.push(charge.clone());
        charge
    }

    fn all(&self) -> Vec<Charge> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
