//! Which route a request takes: the first of the file that matches.

use http::{Method, Request, header};

use super::path;

/// What a route matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Without a port; compared without regard to case. `None` matches every host.
    pub host: Option<Box<str>>,
    /// Matched against whole segments. A trailing slash makes no difference.
    pub path_prefix: Box<str>,
    /// `None` matches every method.
    pub methods: Option<Vec<Method>>,
}

/// What of a request the routes look at.
#[derive(Debug)]
pub(super) struct Target<'a> {
    method: &'a Method,
    /// Without its port, as the client spelled it.
    host: &'a str,
    /// With unreserved escapes decoded.
    pub(super) path: std::borrow::Cow<'a, str>,
}

// === impl Match ===

impl Match {
    pub(super) fn matches(&self, target: &Target<'_>) -> bool {
        self.matches_host(target)
            && path::starts_with(&target.path, self.path_prefix.trim_end_matches('/'))
            && self.methods.as_ref().is_none_or(|methods| methods.contains(target.method))
    }

    pub(super) fn matches_host(&self, target: &Target<'_>) -> bool {
        self.host.as_ref().is_none_or(|host| host.eq_ignore_ascii_case(target.host))
    }
}

// === impl Target ===

impl<'a> Target<'a> {
    pub(super) fn of<B>(request: &'a Request<B>) -> Self {
        let host = match request.uri().authority() {
            Some(authority) => authority.host(),
            None => request
                .headers()
                .get(header::HOST)
                .and_then(|value| value.to_str().ok())
                .map_or("", without_port),
        };
        Self {
            method: request.method(),
            // A fully qualified name is the same name.
            host: host.strip_suffix('.').unwrap_or(host),
            path: path::decoded(request.uri().path()),
        }
    }
}

/// Cuts the port off; the colons of an IPv6 address stand in brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        Some(_) | None => host,
    }
}

/// Whether a `Host` value could be the authority of a URI without user information (RFC 9112
/// section 3.2, RFC 3986 section 3.2.2). A comma could too, but nobody names a host with one: it
/// is what a proxy makes of two lines.
pub(super) fn is_valid_host(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+;=".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, uri: &str, host: Option<&str>) -> Request<()> {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(host) = host {
            request = request.header(header::HOST, host);
        }
        request.body(()).unwrap()
    }

    fn charges() -> Match {
        Match {
            host: Some("api.example.com".into()),
            path_prefix: "/v1/charges/".into(),
            methods: Some(vec![Method::POST]),
        }
    }

    fn matched(method: Method, uri: &str, host: Option<&str>) -> bool {
        charges().matches(&Target::of(&request(method, uri, host)))
    }

    #[test]
    fn hosts_match_without_port_and_without_regard_to_case() {
        for host in ["api.example.com", "API.Example.com:8080", "api.example.com.:80"] {
            assert!(matched(Method::POST, "/v1/charges", Some(host)), "{host}");
        }
        for host in [Some("example.com"), Some("api.example.com.evil"), None] {
            assert!(!matched(Method::POST, "/v1/charges", host), "{host:?}");
        }
    }

    #[test]
    fn the_authority_of_an_absolute_form_beats_the_host_line() {
        let uri = "http://api.example.com/v1/charges";
        assert!(matched(Method::POST, uri, Some("other.example.com")));
    }

    #[test]
    fn paths_match_decoded_and_by_whole_segments() {
        let host = Some("api.example.com");
        assert!(matched(Method::POST, "/v1/%63harges/42?x=/", host));
        assert!(!matched(Method::POST, "/v1/charges-old", host));
        assert!(!matched(Method::GET, "/v1/charges", host));
    }

    #[test]
    fn a_host_line_that_is_no_authority_is_invalid() {
        for host in ["", "a", "a.example:80", "[::1]:80"] {
            assert!(is_valid_host(host.as_bytes()), "{host}");
        }
        for host in ["a b", "a/b", "user@a", "http://a", "a,b c"] {
            assert!(!is_valid_host(host.as_bytes()), "{host}");
        }
    }
}
