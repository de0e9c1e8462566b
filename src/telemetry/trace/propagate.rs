//! `traceparent` and `tracestate` of W3C Trace Context, read from and written to header fields.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

struct Carried<'a> {
    traceparent: &'a str,
    tracestate: Option<Cow<'a, str>>,
}

struct Fields<'a>(&'a mut HeaderMap);

/// The caller's span; an empty context without exactly one `traceparent` that is well-formed.
pub(super) fn extract(headers: &HeaderMap) -> Context {
    let mut lines = headers.get_all(TRACEPARENT).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return Context::new() };
    let Some(traceparent) = line.to_str().ok().filter(|line| is_well_formed(line)) else {
        return Context::new();
    };
    let carried = Carried { traceparent, tracestate: tracestate(headers) };
    TraceContextPropagator::new().extract_with_context(&Context::new(), &carried)
}

/// Writes the span of `context` in the place of the caller's.
pub(super) fn inject(context: &Context, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(context, &mut Fields(headers));
}

/// The library would also take ids that are cut short (W3C Trace Context section 3.2).
fn is_well_formed(traceparent: &str) -> bool {
    const LENGTH: usize = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".len();
    let bytes = traceparent.as_bytes();
    let Some((known, more)) = bytes.split_at_checked(LENGTH) else { return false };
    let is_right = |(at, byte): (usize, &u8)| match at {
        2 | 35 | 52 => *byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    // A later version may have more fields.
    let may_end = more.is_empty() || (!known.starts_with(b"00") && more.starts_with(b"-"));
    known.iter().enumerate().all(is_right) && may_end
}

/// Its lines are one list (RFC 9110 section 5.3).
fn tracestate(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let mut lines = headers.get_all(TRACESTATE).iter().map(|line| line.to_str().ok());
    let first = lines.next()??;
    let mut all = Cow::Borrowed(first);
    for line in lines {
        all.to_mut().push(',');
        all.to_mut().push_str(line?);
    }
    Some(all)
}

impl Extractor for Carried<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            TRACEPARENT => Some(self.traceparent),
            TRACESTATE => self.tracestate.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT, TRACESTATE]
    }
}

impl Injector for Fields<'_> {
    fn set(&mut self, key: &str, value: String) {
        let Ok(name) = HeaderName::from_bytes(key.as_bytes()) else { return };
        // An empty list is no field.
        match HeaderValue::try_from(value) {
            Ok(value) if !value.is_empty() => drop(self.0.insert(name, value)),
            Ok(_) | Err(_) => drop(self.0.remove(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let lines = lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        headers
    }

    fn passed_on(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut out = headers(&[("traceparent", "of-the-caller"), ("tracestate", "of=the-caller")]);
        inject(&extract(&headers(lines)), &mut out);
        out
    }

    #[test]
    fn a_callers_span_and_all_lines_of_its_state_are_read() {
        let out =
            passed_on(&[("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")]);
        assert_eq!(out["traceparent"], PARENT);
        assert_eq!(out["tracestate"], "a=1,b=2");
    }

    #[test]
    fn a_callers_span_without_a_state_leaves_none_of_another() {
        let out = passed_on(&[("traceparent", PARENT)]);
        assert_eq!(out["traceparent"], PARENT);
        assert_eq!(out.get("tracestate"), None);
    }

    #[test]
    fn a_later_version_may_say_more() {
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";
        assert_eq!(passed_on(&[("traceparent", later)])["traceparent"], PARENT);
    }

    #[test]
    fn two_spans_or_a_malformed_one_are_none() {
        let zeros = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let invalid = "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let long = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-0";
        let cases: [&[(&str, &str)]; 6] = [
            &[("traceparent", invalid)],
            &[("traceparent", long)],
            &[("traceparent", PARENT), ("traceparent", PARENT)],
            &[("traceparent", "00-4bf92f-00f067aa0ba902b7-01")],
            &[("traceparent", zeros)],
            &[("tracestate", "a=1")],
        ];
        for lines in cases {
            let out = passed_on(lines);
            assert_eq!(out["traceparent"], "of-the-caller", "{lines:?}");
        }
    }
}
