//! The API's JSON as a person reads it.

use serde_json::Value;

const COLUMNS: [(&str, &str); 6] = [
    ("STATE", "state"),
    ("ROUTE", "route"),
    ("ATTEMPT", "attempt"),
    ("SINCE", "since"),
    ("EXPIRES", "expires_at"),
    ("ID", "id"),
];

/// A page of keys.
pub(super) fn keys(page: &Value) -> String {
    let keys = page["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut rows = vec![COLUMNS.map(|(title, _)| title.to_owned())];
    rows.extend(keys.iter().map(|key| COLUMNS.map(|(_, member)| word(&key[member]))));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let row = |row: &[String; 6]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines: Vec<String> =
        if keys.is_empty() { vec!["no keys".to_owned()] } else { rows.iter().map(row).collect() };
    let unreadable = page["unreadable"].as_array().into_iter().flatten();
    lines.extend(unreadable.map(|id| format!("unreadable: {}", word(id))));
    lines.extend(page["next"].as_str().map(|next| format!("there are more: --after {next}")));
    lines.join("\n") + "\n"
}

/// One key, a line for each thing that is known of it.
pub(super) fn key(key: &Value) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: &Value| {
        if !value.is_null() {
            lines.push(format!("{name:15}{}\n", word(value)));
        }
    };
    line("id", &key["id"]);
    line("state", &key["state"]);
    line("since", &key["since"]);
    line("expires", &key["expires_at"]);
    line("cause", &key["cause"]);
    line("route", &key["route"]);
    line("attempt", &key["attempt"]);
    if key["earlier_attempt_may_have_run"] == true {
        line("", &"an earlier attempt may have run too".into());
    }
    line("fencing token", &key["fencing_token"]);
    line("begun", &key["begun_at"]);
    line("gateway", &key["gateway"]);
    line("request id", &key["request_id"]);
    if key["waiters"].as_u64().is_some_and(|waiters| waiters > 0) {
        line("waiters", &key["waiters"]);
    }
    line("fingerprint", &key["request"]["fingerprint"]);
    let response = &key["response"];
    line("answer", &response["status"]);
    if response["replayable"] == false {
        line("", &"its body was too large to keep".into());
    }
    if let Some(bytes) = response["body_bytes"].as_u64() {
        line("body", &format!("{bytes} bytes").into());
    }
    let names = response["headers"].as_array().into_iter().flatten().map(word);
    let names = names.collect::<Vec<_>>().join(", ");
    if !names.is_empty() {
        line("headers", &names.into());
    }
    lines.concat()
}

/// What a decision made of a key, and what follows from it.
pub(super) fn decided(key: &Value) -> String {
    let (id, state) = (word(&key["id"]), word(&key["state"]));
    match &*state {
        "completed" => format!(
            "{id} is completed: retries get {} until {}\n",
            word(&key["response"]["status"]),
            word(&key["expires_at"]),
        ),
        "absent" => format!("{id} is absent: the next request with this key executes\n"),
        _ => format!("{id} is {state}\n"),
    }
}

/// Without quotes, and without what a terminal would obey.
fn word(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
