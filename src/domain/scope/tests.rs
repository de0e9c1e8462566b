//! Who is whom.

use super::*;

const KEY: HeaderName = HeaderName::from_static("x-api-key");
const TENANT: HeaderName = HeaderName::from_static("x-tenant");

fn scope(lines: &[(HeaderName, &'static str)], rule: &ScopeRule) -> Result<Scope, ScopeMissing> {
    let lines = lines.iter().map(|(name, line)| (name.clone(), HeaderValue::from_static(line)));
    let mut headers = HeaderMap::new();
    for (name, line) in lines {
        headers.append(name, line);
    }
    Scope::read(&headers, rule)
}

fn by(names: &[HeaderName], anonymous: bool) -> ScopeRule {
    ScopeRule { source: ScopeSource::Headers(names.to_vec()), anonymous }
}

// R59, R67
#[test]
fn callers_with_different_values_have_different_scopes() {
    let rule = by(&[KEY, TENANT], false);
    let splits = [
        vec![(KEY, "a"), (TENANT, "b")],
        vec![(KEY, "b"), (TENANT, "a")],
        vec![(KEY, "ab"), (TENANT, "b")],
        vec![(KEY, "a"), (TENANT, "bb")],
        vec![(KEY, "a"), (KEY, "b"), (TENANT, "b")],
        vec![(KEY, "b"), (KEY, "a"), (TENANT, "b")],
        vec![(KEY, "a,b"), (TENANT, "b")],
        vec![(KEY, "a"), (TENANT, "b"), (TENANT, "")],
        vec![(KEY, "A"), (TENANT, "b")],
    ];
    for (at, split) in splits.iter().enumerate() {
        for other in &splits[..at] {
            assert_ne!(scope(split, &rule), scope(other, &rule), "{split:?} {other:?}");
        }
        assert_eq!(scope(split, &rule), scope(split, &rule));
    }
}

#[test]
fn a_request_without_the_header_is_refused() {
    let rule = by(&[KEY, TENANT], false);
    assert_eq!(scope(&[(KEY, "a")], &rule), Err(ScopeMissing(TENANT)));
    assert_eq!(scope(&[(KEY, ""), (TENANT, "a")], &rule), Err(ScopeMissing(KEY)));
}

// R62
#[test]
fn the_anonymous_share_a_scope_that_is_no_callers() {
    let rule = by(&[KEY], true);
    let anonymous = scope(&[], &rule).unwrap();
    assert_eq!(scope(&[(KEY, "")], &rule), Ok(anonymous));
    for value in ["anonymous", "none", "0", "1"] {
        assert_ne!(scope(&[(KEY, value)], &rule), Ok(anonymous));
    }
    let nobody = ScopeRule { source: ScopeSource::None, anonymous: true };
    assert_ne!(scope(&[], &nobody), Ok(anonymous));
}
