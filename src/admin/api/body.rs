//! Request bodies: read within bounds of size and time, as JSON of exactly the known members.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::super::problem::{Code, Problem};

/// Room for the largest answer that any ledger keeps, in base64, and its headers.
const LARGEST: usize = 1 << 20;

const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn read<T: DeserializeOwned>(body: Body) -> Result<T, Problem> {
    let reading = timeout(PATIENCE, Limited::new(body, LARGEST).collect());
    let read = reading.await.map_err(|_| {
        let detail = format_args!("the body did not arrive within {PATIENCE:?}").to_string();
        Problem::new(Code::RequestTimeout, detail)
    })?;
    let bytes: Bytes = match read {
        Ok(read) => read.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let detail = format!("the body is over {LARGEST} bytes");
            return Err(Problem::new(Code::RequestTooLarge, detail));
        }
        Err(_broken) => return Err(Problem::bad_request("the body broke off")),
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        Problem::bad_request(format_args!("the body is not as described: {error}"))
    })
}
