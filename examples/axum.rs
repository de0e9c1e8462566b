//! An axum app whose payments are safe to retry, without a gateway in front.
//!
//! ```console
//! $ cargo run --example axum
//! $ curl -i 127.0.0.1:3000/v1/payments -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-1' -d '{"amount": 1999}'
//! $ curl -i 127.0.0.1:3000/v1/payments -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-1' -d '{"amount": 1999}'
//! $ curl -i 127.0.0.1:3000/v1/payments -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-1' -d '{"amount": 1}'
//! $ curl -i 127.0.0.1:3000/v1/payments -H 'X-Api-Key: shop-1' -d '{"amount": 1999}'
//! $ curl 127.0.0.1:3000/v1/payments
//! ```
//!
//! The first pays: 201. The second is answered as the first, with `idempotent-replayed: true`; so
//! it is after a restart, since keys and answers are in a file. The third is refused, 422: the key
//! belongs to another payment. The fourth has no key: 400. The last says how often money moved in
//! this process: once.

#![expect(clippy::print_stdout, reason = "a program to be tried in a terminal")]

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Json, Router,
    extract::State,
    routing::{get, post},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use oncegate::{
    domain::ScopeRule,
    gateway::{
        IdempotencyLayer,
        idempotency::{Settings, Shared},
    },
    ledger::{
        Ledger,
        embedded::{self, Embedded},
    },
};
use serde_json::{Value, json};

const ADDRESS: &str = "127.0.0.1:3000";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::temp_dir().join("oncegate-axum-example.redb");
    let ledger = Arc::new(Embedded::open(&embedded::Settings::file(&file))?);
    let shared = Shared::new(Arc::clone(&ledger) as Arc<dyn Ledger>);
    // Whatever authenticates the caller goes outside of the layer: a replay asks nobody again.
    let scope = ScopeRule::headers([HeaderName::from_static("x-api-key")]);
    let once = IdempotencyLayer::new(shared.clone(), Settings::new("payments", scope));

    let payments = Arc::new(AtomicU64::new(0));
    let app = Router::new()
        .route("/v1/payments", post(pay).layer(once))
        .route("/v1/payments", get(count))
        .with_state(payments);

    let listener = tokio::net::TcpListener::bind(ADDRESS).await?;
    println!("listening on http://{ADDRESS}, remembering in {}", file.display());
    axum::serve(listener, app).with_graceful_shutdown(interrupted()).await?;

    // A payment outlives its client: what still runs is stored before the process ends.
    shared.arbiter.idle().await;
    ledger.close().await;
    Ok(())
}

async fn pay(
    State(payments): State<Arc<AtomicU64>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), (StatusCode, String)> {
    let order: Value = serde_json::from_slice(&body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("send JSON: {error}\n")))?;
    let number = payments.fetch_add(1, Ordering::Relaxed) + 1;
    // Told to the payment provider, it can refuse whoever comes with a lower one.
    let token = headers.get("idempotency-fencing-token").and_then(|token| token.to_str().ok());
    let payment = json!({ "payment": number, "order": order, "token": token });
    Ok((StatusCode::CREATED, Json(payment)))
}

async fn count(State(payments): State<Arc<AtomicU64>>) -> String {
    format!("{}\n", payments.load(Ordering::Relaxed))
}

async fn interrupted() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        println!("Ctrl-C will not be noticed: {error}");
    }
}
