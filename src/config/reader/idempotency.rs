//! What a route promises about keyed requests.

use http::HeaderName;

use super::{
    headers::{read_dropped, read_end_to_end, read_identity, read_own},
    policy::{
        read_in_progress, read_on_session_loss, read_responses, read_retention,
        read_unknown_outcome,
    },
    value::Value,
};
use crate::{
    config::model::{FingerprintRule, ForwardKey, Idempotency, Responses},
    domain::{BodyMode, KeyFormat, KeyRules, ScopeRule, ScopeSource},
};

/// `route` is the route's name, which is its namespace unless another is written.
pub(super) fn read(rules: &Value<'_>, route: &str) -> Option<Idempotency> {
    let header = rules.get("header").and_then(|header| read_own(&header));
    let scope = read_scope(rules, header.as_ref());
    let namespace = match rules.get("namespace") {
        Some(namespace) => namespace.name(),
        None => Some(route.to_owned()),
    };
    let key = rules.get("key").and_then(|key| read_key(&key));
    let fingerprint = rules
        .get("fingerprint")
        .and_then(|fingerprint| read_fingerprint(&fingerprint, header.as_ref()));
    let in_progress = rules.get("in_progress").and_then(|policy| read_in_progress(&policy));
    let unknown_outcome =
        rules.get("unknown_outcome").and_then(|policy| read_unknown_outcome(&policy));
    let on_session_loss = read_on_session_loss(rules, unknown_outcome);
    let retention = rules.get("retention").and_then(|retention| read_retention(&retention));
    let responses = match rules.get("responses") {
        Some(responses) => read_responses(&responses),
        None => Some(Responses::default()),
    };
    let replay_header = rules.get("replay_header").and_then(|header| read_own(&header));
    if let (Some(header), Some(replay), Some(field)) =
        (&header, &replay_header, rules.get("replay_header"))
        && header == replay
    {
        field.mistake("is the header of the key", "name another one");
    }
    let drop_headers = match rules.get("drop_headers") {
        Some(headers) => headers.each(read_dropped),
        None => Some(Vec::new()),
    };
    let forwards = [("pass", ForwardKey::Pass), ("strip", ForwardKey::Strip)];
    Some(Idempotency {
        header: header?,
        required: rules.flag("required")?,
        scope: scope?,
        namespace: namespace?,
        key: key?,
        fingerprint: fingerprint?,
        in_progress: in_progress?,
        unknown_outcome: unknown_outcome?,
        on_session_loss: on_session_loss?,
        retention: retention?,
        max_request_body: rules.size("max_request_body")?,
        max_stored_body: rules.size("max_stored_body")?,
        responses: responses?,
        forward_key: rules.word("forward_key", &forwards)?,
        replay_header: replay_header?,
        drop_headers: drop_headers?,
    })
}

fn read_scope(rules: &Value<'_>, key_header: Option<&HeaderName>) -> Option<ScopeRule> {
    let anonymous = rules.word("scope_missing", &[("reject", false), ("anonymous", true)]);
    let scope = rules.get("scope")?;
    let source = if scope.is_list() {
        ScopeSource::Headers(scope.each(|header| {
            let name = read_identity(header)?;
            if Some(&name) == key_header {
                return header.is_not(
                    "is the header of the key",
                    "name a header that identifies the caller",
                );
            }
            Some(name)
        })?)
    } else {
        scope.text()?;
        ScopeSource::None
    };
    if source == ScopeSource::None && anonymous == Some(true) {
        if let Some(field) = rules.get("scope_missing") {
            field.mistake("with `scope: none` no header can be missing", "leave it out");
        }
        return None;
    }
    Some(ScopeRule { source, anonymous: anonymous? })
}

fn read_key(key: &Value<'_>) -> Option<KeyRules> {
    let formats = [("any", KeyFormat::Any), ("uuid", KeyFormat::Uuid)];
    Some(KeyRules { max_length: key.count("max_length")?, format: key.word("format", &formats)? })
}

fn read_fingerprint(
    fingerprint: &Value<'_>,
    key_header: Option<&HeaderName>,
) -> Option<FingerprintRule> {
    let headers = match fingerprint.get("headers") {
        Some(headers) => headers.each(|header| {
            let name = read_end_to_end(header)?;
            if Some(&name) == key_header {
                return header.is_not("is the header of the key", "leave it out: it is the same");
            }
            Some(name)
        }),
        None => Some(Vec::new()),
    };
    let ignored = fingerprint.get("ignore");
    let pointers = match &ignored {
        Some(ignored) => ignored.each(read_pointer),
        None => Some(Vec::new()),
    };
    let body = match (fingerprint.get("body")?.text()?, ignored) {
        ("json", _) => BodyMode::Json { ignore: pointers? },
        (_, Some(ignored)) => {
            ignored.mistake("only `body: json` can ignore members", "write it, or leave this out");
            return None;
        }
        ("form", None) => BodyMode::Form,
        ("multipart", None) => BodyMode::Multipart,
        ("none", None) => BodyMode::None,
        (_, None) => BodyMode::Raw,
    };
    Some(FingerprintRule { body, headers: headers? })
}

/// A JSON pointer (RFC 6901) to something inside a document.
fn read_pointer(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    let escapes_are_valid = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if text.starts_with('/') && escapes_are_valid {
        Some(text.to_owned())
    } else {
        value.is_not("is not a JSON pointer", "write one like `/meta/sent_at`")
    }
}
