//! What the API shows and decides.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};

use super::{
    super::OPEN_API,
    support::{Harness, id, local},
};
use crate::{
    domain::StoredBody,
    ledger::{Begun, Takeover},
};

#[tokio::test]
async fn keys_are_listed_shown_and_found_by_their_name() {
    let harness = Harness::new(None);
    harness.left_unknown(1).await;
    let _hold = harness.executing(2, Takeover::Never).await;

    let listed = harness.get("/api/v1/keys?state=unknown&route=charges&limit=5").await;
    assert_eq!(listed.status, 200);
    assert_eq!(listed.headers["cache-control"], "no-store");
    assert_eq!(listed.body["keys"].as_array().unwrap().len(), 1);
    let shown = harness.get(&format!("/api/v1/keys/{}", id(1))).await.body;
    assert_eq!(shown, listed.body["keys"][0]);
    assert_eq!(shown["id"], id(1));
    assert_eq!(shown["state"], "unknown");
    assert_eq!(shown["cause"], "the upstream timed out");
    assert_eq!((&shown["route"], &shown["gateway"]), (&json!("charges"), &json!("gateway-1")));
    assert_eq!((&shown["attempt"], &shown["waiters"]), (&json!(1), &json!(3)));
    assert_eq!(shown["request"]["fingerprint"], "09".repeat(32));
    let wanted = json!({ "route": "charges", "key": "k", "scope": { "X-Api-Key": "secret" } });
    assert_eq!(harness.post("/api/v1/keys/lookup", &wanted).await.body, shown);
    let lines = json!({ "X-Api-Key": ["a", " b "] });
    let wanted = json!({ "route": "charges", "key": "k", "scope": lines });
    harness.post("/api/v1/keys/lookup", &wanted).await;
    let asked = harness.asked.lock().unwrap();
    let values: Vec<_> = asked[1].scope.get_all("x-api-key").iter().collect();
    assert_eq!(values, ["a", "b"]);
    assert!(!format!("{:?}", asked[0]).contains("secret"));
}

#[tokio::test]
async fn what_is_not_there_or_not_asked_rightly_is_a_problem() {
    let harness = Harness::new(None);
    let lookup = |route: &str, scope: Value| json!({ "route": route, "key": "k", "scope": scope });
    let key = |scope: Value| lookup("charges", scope);
    let alice = || json!({ "X-Api-Key": "a" });
    for (target, body, status, code) in [
        (format!("/api/v1/keys/{}", id(1)), None, 404, "key-absent"),
        ("/api/v1/keys/nonsense".into(), None, 400, "bad-request"),
        ("/api/v1/keys?limit=0".into(), None, 400, "bad-request"),
        ("/api/v1/keys?limit=1001".into(), None, 400, "bad-request"),
        ("/api/v1/keys?state=odd".into(), None, 400, "bad-request"),
        ("/api/v1/keys?after=odd".into(), None, 400, "bad-request"),
        ("/api/v1/keys?odd=1".into(), None, 400, "bad-request"),
        ("/api/v1/keys/lookup".into(), Some(key(alice())), 404, "key-absent"),
        ("/api/v1/keys/lookup".into(), Some(key(json!({}))), 400, "bad-request"),
        ("/api/v1/keys/lookup".into(), Some(key(json!({ "a b": "c" }))), 400, "bad-request"),
        ("/api/v1/keys/lookup".into(), Some(key(json!({ "a": "\n" }))), 400, "bad-request"),
        ("/api/v1/keys/lookup".into(), Some(lookup("plain", alice())), 400, "bad-request"),
        ("/api/v1/keys/lookup".into(), Some(lookup("odd", alice())), 404, "no-route"),
        ("/api/v1/keys/lookup".into(), Some(json!({ "key": "k" })), 400, "bad-request"),
    ] {
        let answer = match &body {
            Some(body) => harness.post(&target, body).await,
            None => harness.get(&target).await,
        };
        assert_eq!((answer.status, answer.code()), (status, code), "{target} {body:?}");
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
}

#[tokio::test]
async fn a_resolved_key_has_the_operators_answer() {
    let harness = Harness::new(None);
    harness.left_unknown(1).await;
    let decision = json!({
        "reason": "the upstream's log says so", "actor": "alice", "status": 201,
        "headers": [["Content-Type", "text/plain"], ["X-Note", "a"], ["X-Note", "b"]],
        "body_base64": "AP8K",
    });

    let answer = harness.post(&format!("/api/v1/keys/{}/resolve", id(1)), &decision).await;

    assert_eq!((answer.status, &answer.body["state"]), (200, &json!("completed")));
    let wanted = json!({
        "status": 201, "headers": ["content-type", "x-note", "x-note"],
        "body_bytes": 3, "replayable": true,
    });
    assert_eq!(answer.body["response"], wanted);
    let Begun::Completed(record) = harness.begin(1, Takeover::Never).await else { panic!() };
    assert_eq!(record.response.body, StoredBody::Kept(bytes::Bytes::from_static(b"\0\xff\n")));
    let again = harness.post(&format!("/api/v1/keys/{}/resolve", id(1)), &decision).await;
    assert_eq!((again.status, again.code()), (409, "key-completed"));
}

#[tokio::test]
async fn a_released_key_is_absent_and_a_held_one_is_refused() {
    let harness = Harness::new(None);
    harness.left_unknown(1).await;
    let hold = harness.executing(2, Takeover::Never).await;
    let why = json!({ "reason": "it did not run" });
    let force = json!({ "reason": "it hangs", "force": true });
    let release = |key: u8| format!("/api/v1/keys/{}/release", id(key));

    assert_eq!(harness.post(&release(1), &force).await.code(), "key-not-held");
    let answer = harness.post(&release(1), &why).await;
    assert_eq!(answer.body, json!({ "id": id(1), "state": "absent" }));
    assert_eq!(harness.post(&release(1), &why).await.code(), "key-absent");

    assert_eq!(harness.post(&release(2), &why).await.code(), "key-in-progress");
    let forced = harness.post(&release(2), &force).await;
    assert_eq!((forced.status, forced.code()), (409, "force-refused"));
    assert!(forced.body["detail"].as_str().unwrap().contains("stop the gateway"));
    hold.release().await.unwrap();
}

#[tokio::test]
async fn a_decision_without_a_reason_or_with_what_cannot_be_replayed_is_refused() {
    let harness = Harness::new(None);
    harness.left_unknown(1).await;
    let resolve = format!("/api/v1/keys/{}/resolve", id(1));
    let long = "x".repeat(1001);
    for wrong in [
        json!({ "status": 200 }),
        json!({ "status": 200, "reason": " " }),
        json!({ "status": 200, "reason": "two\nlines" }),
        json!({ "status": 200, "reason": long }),
        json!({ "status": 200, "reason": "r", "actor": "\u{7}" }),
        json!({ "reason": "r" }),
        json!({ "reason": "r", "status": 101 }),
        json!({ "reason": "r", "status": 600 }),
        json!({ "reason": "r", "status": 204, "body": "x" }),
        json!({ "reason": "r", "status": 200, "body": "x", "body_base64": "eA==" }),
        json!({ "reason": "r", "status": 200, "body_base64": "?" }),
        json!({ "reason": "r", "status": 200, "force": true }),
        json!({ "reason": "r", "status": 200, "headers": [["a b", "c"]] }),
        json!({ "reason": "r", "status": 200, "headers": [["a", "b\r\nc: d"]] }),
        json!({ "reason": "r", "status": 200, "headers": [["Content-Length", "5"]] }),
        json!({ "reason": "r", "status": 200, "headers": [["Transfer-Encoding", "chunked"]] }),
        json!({ "reason": "r", "status": 200, "headers": [["Set-Cookie", "a=b"]] }),
        json!({ "reason": "r", "status": 200, "headers": [["Connection", "X-A"], ["X-A", "b"]] }),
        json!({ "reason": "r", "status": 200, "headers": [["Idempotent-Replayed", "true"]] }),
        json!({ "reason": "r", "status": 200, "headers": [["Idempotency-Error-Source", "x"]] }),
    ] {
        let answer = harness.post(&resolve, &wrong).await;
        assert_eq!((answer.status, answer.code()), (400, "bad-request"), "{wrong}");
    }
    let large = json!({ "reason": "r", "status": 200, "body": "x".repeat(512 * 1024 + 1) });
    assert_eq!(harness.post(&resolve, &large).await.code(), "request-too-large");
    let huge = json!({ "reason": "r", "status": 200, "body": "x".repeat(1024 * 1024) });
    assert_eq!(harness.post(&resolve, &huge).await.code(), "request-too-large");
    assert!(matches!(harness.begin(1, Takeover::Never).await, Begun::Unknown(_)));

    let largest = json!({ "reason": "r", "status": 200, "body": "x".repeat(512 * 1024) });
    assert_eq!(harness.post(&resolve, &largest).await.status, 200);
}

#[tokio::test]
async fn the_ledger_and_the_masked_configuration_are_shown() {
    let harness = Harness::new(None);
    let ensemble = harness.get("/api/v1/ensemble").await.body;
    assert_eq!((&ensemble["ledger"], &ensemble["usable"]), (&json!("embedded"), &json!(true)));
    assert_eq!(harness.get("/api/v1/config").await.body["admin"]["token"], "<hidden>");
}

#[tokio::test]
async fn the_description_has_every_path_and_describes_what_is_answered() {
    let harness = Harness::new(None);
    let description = harness.get("/api/v1/openapi.json").await.body;
    assert_eq!(description, serde_json::from_str::<Value>(OPEN_API).unwrap());
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in ["get", "post"] {
            let target = path.replace("{id}", &id(1));
            let request = local(method.to_uppercase().parse::<Method>().unwrap(), &target)
                .header("content-type", "application/json");
            let answer = harness.ask(request, Body::empty()).await;
            assert_eq!(answer.status != 405, item[method].is_object(), "{method} {path}");
        }
    }

    harness.left_unknown(1).await;
    let hold = harness.executing(2, Takeover::Never).await;
    let key = |key: u8| format!("/api/v1/keys/{}", id(key));
    let why = json!({ "reason": "r", "status": 200 });
    let validates = |schema: &str, value: &Value| {
        let mut whole = description.clone();
        whole["$ref"] = format!("#/components/schemas/{schema}").into();
        let validator = jsonschema::validator_for(&whole).unwrap();
        if let Err(error) = validator.validate(value) {
            panic!("{schema}: {error}: {value}");
        }
    };
    validates("Page", &harness.get("/api/v1/keys").await.body);
    validates("Key", &harness.get(&key(1)).await.body);
    validates("Key", &harness.get(&key(2)).await.body);
    validates("Problem", &harness.get(&key(3)).await.body);
    validates("Ensemble", &harness.get("/api/v1/ensemble").await.body);
    validates("Resolve", &why);
    validates("Key", &harness.post(&format!("{}/resolve", key(1)), &why).await.body);
    hold.abandon(crate::domain::Cause::Interrupted).await.unwrap();
    let why = json!({ "reason": "r" });
    validates("Release", &why);
    validates("Absent", &harness.post(&format!("{}/release", key(2)), &why).await.body);
}
