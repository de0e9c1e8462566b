//! Upstreams and their endpoints.

use std::net::IpAddr;

use super::value::{NAME_FORM, Value, is_name};
use crate::config::model::{Balance, Endpoint, Upstream};

pub(super) fn read(upstreams: &Value<'_>) -> Option<Vec<Upstream>> {
    let read: Vec<_> = upstreams
        .entries()
        .into_iter()
        .map(|(name, upstream)| {
            let name = read_name(upstreams, name);
            let upstream = read_upstream(&upstream);
            upstream.zip(name).map(|(upstream, name)| Upstream { name, ..upstream })
        })
        .collect();
    read.into_iter().collect()
}

fn read_name(upstreams: &Value<'_>, name: &str) -> Option<String> {
    if is_name(name) {
        return Some(name.to_owned());
    }
    if let Some(field) = upstreams.named(name) {
        let wrong = if name.contains("${") {
            "a name takes nothing from the environment"
        } else {
            "this is not a name"
        };
        field.mistake(wrong, NAME_FORM);
    }
    None
}

fn read_upstream(upstream: &Value<'_>) -> Option<Upstream> {
    let balances =
        [("least_requests", Balance::LeastRequests), ("round_robin", Balance::RoundRobin)];
    let endpoints = upstream
        .get("endpoints")
        .and_then(|endpoints| endpoints.each(|it| read_endpoint(it, &TO_UPSTREAMS)));
    Some(Upstream {
        name: String::new(),
        endpoints: endpoints?,
        balance: upstream.word("balance", &balances)?,
        connect_timeout: upstream.duration("connect_timeout")?,
        request_timeout: upstream.duration("request_timeout")?,
        idle_timeout: upstream.duration("idle_timeout")?,
        stream_timeout: upstream.duration("stream_timeout")?,
    })
}

/// What is said of a URL that is none of an [`Endpoint`].
pub(super) struct Words {
    /// What one writes.
    pub(super) form: &'static str,
    pub(super) tls: &'static str,
    pub(super) path: &'static str,
}

const TO_UPSTREAMS: Words = Words {
    form: "write one like `http://10.0.0.7:9000`",
    tls: "asks for TLS to upstreams, which is not built yet",
    path: "leave it out: paths are forwarded as they came",
};

/// A server as `http://host:port`.
pub(super) fn read_endpoint(value: &Value<'_>, words: &Words) -> Option<Endpoint> {
    let form = words.form;
    let text = value.text()?;
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        None => return value.is_not("has no scheme", form),
    };
    if scheme == "https" {
        return value.is_not(words.tls, "write an `http://` URL");
    }
    if scheme != "http" {
        return value.is_not("is not an `http` URL", form);
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains('@') {
        return value.is_not("holds a user name or a password", "leave out all before the `@`");
    }
    if rest.contains(['/', '?', '#']) {
        return value.is_not("has a path", words.path);
    }
    let (host, port) = match rest.rsplit_once(':') {
        // The last colon of a bare IPv6 address stands inside its brackets.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (rest, None),
    };
    let port = match port.map(str::parse::<u16>) {
        None => 80,
        Some(Ok(port)) if port != 0 => port,
        Some(_) => return value.is_not("has no port from 1 to 65535", form),
    };
    let Some(host) = read_host(host) else {
        return value.is_not("has no valid host", form);
    };
    let authority =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Some(Endpoint { host, port, authority })
}

/// A host of a URL in lower case and without brackets (RFC 3986 section 3.2.2).
pub(super) fn read_host(text: &str) -> Option<String> {
    if let Some(address) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let address: IpAddr = address.parse().ok()?;
        return address.is_ipv6().then(|| address.to_string());
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_letter);
    let name = text.strip_suffix('.').unwrap_or(text);
    (name.len() <= 253 && name.split('.').all(is_label)).then(|| name.to_ascii_lowercase())
}
