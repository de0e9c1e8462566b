//! Routes and what they match.

use http::Method;

use super::{idempotency, upstreams::read_host, value::Value};
use crate::config::{
    model::{Match, Route},
    words::{meant, one_of},
};

/// `upstreams` are the names in file order, also of those that are mistaken themselves.
pub(super) fn read(routes: &Value<'_>, upstreams: &[&str]) -> Option<Vec<Route>> {
    let items = routes.items();
    unique_names(&items);
    let read: Vec<_> = items.iter().map(|route| read_route(route, upstreams)).collect();
    // A list that is no list at all was reported.
    if routes.is_list() { read.into_iter().collect() } else { None }
}

fn unique_names(routes: &[Value<'_>]) {
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for name in routes.iter().filter_map(|route| route.get("name")) {
        let Some(text) = name.text() else { continue };
        match seen.iter().find(|(earlier, _)| *earlier == text) {
            Some((_, line)) => name.mistake(
                &format!("{} is the name of the route in line {line}", name.shown()),
                "give each route a name of its own: metrics and records are told apart by it",
            ),
            None => seen.push((text, name.span.start.line)),
        }
    }
}

fn read_route(route: &Value<'_>, upstreams: &[&str]) -> Option<Route> {
    let name = route.get("name").and_then(|name| name.name());
    let matching = route.get("match").and_then(|matching| read_match(&matching));
    let upstream = route.get("upstream").and_then(|name| read_upstream(&name, upstreams));
    let idempotency = match route.get("idempotency") {
        // A route whose name is mistaken still has its other mistakes found.
        Some(rules) => idempotency::read(&rules, name.as_deref().unwrap_or_default()).map(Some),
        None => Some(None),
    };
    Some(Route { name: name?, matching: matching?, upstream: upstream?, idempotency: idempotency? })
}

fn read_upstream(name: &Value<'_>, upstreams: &[&str]) -> Option<usize> {
    let text = name.text()?;
    let found = upstreams.iter().position(|upstream| *upstream == text);
    if found.is_none() && !upstreams.is_empty() {
        let right = match meant(text, upstreams) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the upstreams are {}", one_of(upstreams, "and")),
        };
        return name.is_not("is not an upstream of this file", &right);
    }
    found
}

fn read_match(matching: &Value<'_>) -> Option<Match> {
    let host = match matching.get("host") {
        Some(host) => read_host_match(&host).map(Some),
        None => Some(None),
    };
    let path_prefix = matching.get("path_prefix").and_then(|prefix| read_prefix(&prefix));
    let methods = match matching.get("methods") {
        Some(methods) => methods.each(read_method).map(Some),
        None => Some(None),
    };
    Some(Match { host: host?, path_prefix: path_prefix?, methods: methods? })
}

fn read_host_match(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    if text.contains("://") || text.contains('/') {
        return value.is_not("is a URL", "write the host name only, like `api.example.com`");
    }
    if text.contains('*') {
        return value.is_not("has a wildcard", "write one host name, or leave it out to match all");
    }
    match read_host(text) {
        Some(host) if text.starts_with('[') => Some(format!("[{host}]")),
        Some(host) => Some(host),
        None if text.contains(':') => {
            value.is_not("has a port", "write the host name without a port")
        }
        None => value.is_not("is not a host name", "write one like `api.example.com`"),
    }
}

/// The prefix in the form in which paths are compared, so that none can be written that no
/// request ever has.
fn read_prefix(value: &Value<'_>) -> Option<String> {
    let written = value.text()?;
    // Whole segments are matched, so a slash at the end says nothing more.
    let text = match written.strip_suffix('/') {
        Some("") | None => written,
        Some(without) => without,
    };
    let wrong = if !text.starts_with('/') {
        ("does not start with a slash", "write a path like `/v1/charges`, or `/` for all")
    } else if text == "/" {
        return Some(text.to_owned());
    } else if text.contains(['?', '#']) {
        ("has a query or a fragment", "write the path only")
    } else if text.split('/').skip(1).any(|segment| matches!(segment, "" | "." | "..")) {
        ("has an empty or a dot segment", "write the path that a request has in the end")
    } else if text.bytes().any(|byte| !byte.is_ascii_graphic()) {
        ("has a space or a letter that is not ASCII", "escape it, like `%20` or `%C3%A9`")
    } else if !escapes_are_plain(text) {
        (
            "has an escape that paths are never compared with",
            "write letters, digits, `-`, `.`, `_`, `~` as they are, other escapes like `%C3`",
        )
    } else {
        return Some(text.to_owned());
    };
    value.is_not(wrong.0, wrong.1)
}

/// Whether each escape stands for something that must be escaped, in capitals.
fn escapes_are_plain(path: &str) -> bool {
    path.split('%').skip(1).all(|escape| {
        let Some(hex) = escape.get(..2) else { return false };
        let is_upper = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
        let byte = u8::from_str_radix(hex, 16).ok();
        is_upper
            && byte.is_some_and(|byte| {
                !byte.is_ascii_alphanumeric()
                    && !matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/' | b'\\' | 0)
            })
    })
}

fn read_method(value: &Value<'_>) -> Option<Method> {
    const KNOWN: [Method; 8] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
    ];
    let text = value.text()?;
    if text.eq_ignore_ascii_case("CONNECT") {
        return value.is_not("asks for a tunnel", "no route can match it; leave it out");
    }
    let known = KNOWN.iter().find(|known| known.as_str().eq_ignore_ascii_case(text));
    match (Method::from_bytes(text.as_bytes()), known) {
        (Ok(method), Some(known)) if method != *known => {
            value.is_not("is not in capitals, and methods are", &format!("write `{known}`"))
        }
        (Ok(method), _) => Some(method),
        (Err(_), _) => value.is_not("is not a method", "write one like `POST`"),
    }
}
