//! The name under which one request is found in everybody's logs.

use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::{Uuid, fmt::Simple};

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const MAX_LEN: usize = 128;

/// The request's id: the client's, if it is one line of at most 128 bytes of visible ASCII, else a
/// fresh one, which replaces it.
pub fn request_id(headers: &mut HeaderMap) -> HeaderValue {
    let mut lines = headers.get_all(REQUEST_ID).iter();
    if let (Some(id), None) = (lines.next(), lines.next())
        && is_acceptable(id)
    {
        return id.clone();
    }
    let fresh = fresh();
    headers.insert(REQUEST_ID, fresh.clone());
    fresh
}

fn is_acceptable(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    !id.is_empty() && id.len() <= MAX_LEN && id.iter().all(u8::is_ascii_graphic)
}

fn fresh() -> HeaderValue {
    let mut text = [0; Simple::LENGTH];
    let text = Uuid::new_v4().simple().encode_lower(&mut text);
    HeaderValue::from_str(text).expect("hexadecimal digits are visible ASCII")
}
