//! The client's side of the operator's API, for the commands.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use serde_json::Value;

use super::exchange::{AskError, Bounds, exchange};
use crate::domain::Secret;

/// Asks one gateway's API.
#[derive(Clone, Debug)]
pub struct ApiClient {
    url: String,
    token: Option<Token>,
}

#[derive(Clone)]
struct Token(HeaderValue);

/// Why the API gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error(transparent)]
    NotAsked(#[from] AskError),
    /// With the code and the detail of the gateway's answer.
    #[error("{detail} ({code})")]
    Refused { status: StatusCode, code: String, detail: String },
    #[error("answered {status}, but not as this API does; is it a gateway's admin address?")]
    Foreign { status: StatusCode },
}

/// The token has bytes that no header can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the admin token is not one that a header can carry")]
pub struct TokenError;

/// A decision may wait for its turn and for the ledger; a page of a thousand keys is about 1 MB.
const BOUNDS: Bounds = Bounds { patience: Duration::from_mins(1), longest_answer: 16 << 20 };

// === impl ApiClient ===

impl ApiClient {
    /// For the admin address `url` (`http://host:port`).
    pub fn new(url: String, token: Option<&Secret>) -> Result<Self, TokenError> {
        let token = token.map(|token| {
            let mut value = HeaderValue::from_bytes(&[b"Bearer ", token.expose()].concat())
                .map_err(|_| TokenError)?;
            value.set_sensitive(true);
            Ok(Token(value))
        });
        Ok(Self { url, token: token.transpose()? })
    }

    /// `target` is a path and query below `/api/v1`.
    pub async fn get(&self, target: &str) -> Result<Value, ApiError> {
        self.ask(Request::get("/"), target, Bytes::new()).await
    }

    /// Not cancel safe where the request changes something: it may have arrived.
    pub async fn post(&self, target: &str, body: &Value) -> Result<Value, ApiError> {
        let request = Request::post("/").header(header::CONTENT_TYPE, "application/json");
        self.ask(request, target, body.to_string().into()).await
    }

    async fn ask(
        &self,
        mut request: http::request::Builder,
        target: &str,
        body: Bytes,
    ) -> Result<Value, ApiError> {
        if let Some(Token(token)) = &self.token {
            request = request.header(header::AUTHORIZATION, token);
        }
        let target = format!("/api/v1{target}");
        let (status, body) = exchange(&self.url, &target, request, body, BOUNDS).await?;
        let Ok(answer) = serde_json::from_slice::<Value>(&body) else {
            return Err(ApiError::Foreign { status });
        };
        if status.is_success() {
            return Ok(answer);
        }
        match (answer["code"].as_str(), answer["detail"].as_str()) {
            (Some(code), Some(detail)) => {
                Err(ApiError::Refused { status, code: code.into(), detail: detail.into() })
            }
            (None, _) | (_, None) => Err(ApiError::Foreign { status }),
        }
    }
}

// === impl Token ===

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(<hidden>)")
    }
}
