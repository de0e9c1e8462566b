//! What a reload may change, and what needs a restart.

use crate::support::{SMALLEST, read};

const CATCH_ALL: &str = "  - name: rest\n    match: { path_prefix: / }\n    upstream: payments\n";

fn conflicts(old: &str, new: &str) -> Vec<String> {
    read(old).reload_conflicts(&read(new))
}

#[track_caller]
fn refused(new: &str, conflict: &str) {
    let old = format!("{SMALLEST}{CATCH_ALL}");
    assert_eq!(conflicts(&old, new), [format!("{conflict}; restart to apply")]);
}

#[test]
fn routes_upstreams_and_limits_can_change() {
    let old = format!("{SMALLEST}{CATCH_ALL}");
    assert_eq!(conflicts(&old, &old), [""; 0]);
    let new = old
        .replace("http://127.0.0.1:9000", "http://127.0.0.1:9001")
        .replace("[X-Api-Key]", "[X-Api-Key], retention: { completed: 1h }, required: false")
        + "  - { name: new, match: { path_prefix: /new }, upstream: payments }\n\
           limits: { max_in_flight: 5 }\n\
           drain_timeout: 90s\n\
           log: { level: debug }\n";
    assert_eq!(conflicts(&old, &new), [""; 0]);
}

#[test]
fn what_names_a_key_cannot_change() {
    let old = format!("{SMALLEST}{CATCH_ALL}");
    let with = |from: &str, to: &str| old.replace(from, to);
    refused(&with("[X-Api-Key]", "[X-Tenant]"), "route `charges` has another `scope`");
    refused(&with("{ scope", "{ header: X-Key, scope"), "route `charges` has another `header`");
    let namespace = with("{ scope", "{ namespace: other, scope");
    refused(&namespace, "route `charges` has another `namespace`");
    let none = with("    idempotency: { scope: [X-Api-Key] }\n", "");
    refused(&none, "route `charges` no longer has `idempotency`");
    refused(&format!("{old}key_secret: correct-horse\n"), "`key_secret` has changed");
    refused(&with("ledger.redb", "other.redb"), "`ledger` has changed");
    refused(&with(":8080", ":8081"), "`listen` has changed");
    refused(&with(":9090", ":9091"), "`admin` has changed");
}

#[test]
fn a_route_cannot_get_another_namespace_by_a_new_name() {
    let old = format!("{SMALLEST}{CATCH_ALL}");
    refused(
        &old.replace("name: charges", "name: payments"),
        "route `payments` gets requests of route `charges` and has another `namespace`",
    );
}

#[test]
fn a_route_with_a_written_namespace_can_be_renamed() {
    let old = format!("{SMALLEST}{CATCH_ALL}").replace("{ scope", "{ namespace: money, scope");
    assert_eq!(conflicts(&old, &old.replace("name: charges", "name: payments")), [""; 0]);
}

#[test]
fn keyed_requests_cannot_fall_to_a_route_that_does_not_protect_them() {
    let old = format!("{SMALLEST}{CATCH_ALL}");
    refused(
        &old.replace("/v1/charges }", "/v2/charges }"),
        "route `rest` gets requests of route `charges` and no longer has `idempotency`",
    );
    refused(
        &old.replace("/v1/charges }", "/v1/charges, methods: [POST] }"),
        "route `rest` gets requests of route `charges` and no longer has `idempotency`",
    );
}

#[test]
fn a_route_that_was_tried_before_keeps_its_requests() {
    let refunds = "  - name: refunds\n    match: { path_prefix: /v1/charges/refunds }\n    \
                   upstream: payments\n    idempotency: { scope: [X-Api-Key] }\n  - name: charges";
    let old = SMALLEST.replace("  - name: charges", refunds);
    assert_eq!(conflicts(&old, &old), [""; 0]);
    assert_eq!(
        conflicts(SMALLEST, &old),
        [
            "route `refunds` gets requests of route `charges` and has another `namespace`; restart to apply"
        ]
    );
}
