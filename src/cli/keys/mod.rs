//! `oncegate keys`: the operator's view of keys and what may be decided about them.

mod arguments;
mod input;
mod table;

use std::path::Path;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

pub(super) use self::arguments::Keys;
use self::arguments::{ApiArguments, Decision, Name};
use crate::{
    admin::{ApiClient, ApiError, KeyName},
    app,
    config::{self, Loaded, ProcessEnvironment},
    ledger::zookeeper::znode_of,
    telemetry::Chain,
};

/// What a command prints.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// On standard output.
    pub(super) text: String,
    /// On standard error: not for the program that reads the output.
    pub(super) note: String,
}

/// Why a command did nothing.
#[derive(Debug)]
pub(super) enum Failed {
    /// The command line, or a file that it names, is wrong.
    Usage(String),
    /// The gateway refused, found nothing, or did not answer.
    Refused(String),
}

/// Keys on one page of the API at most.
const PAGE: u64 = 1000;

pub(super) async fn run(command: &Keys) -> Result<Said, Failed> {
    match command {
        Keys::List { api, state, route, limit, after } => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            if let Some(state) = state {
                query.append_pair("state", state.as_str());
            }
            if let Some(route) = route {
                query.append_pair("route", route);
            }
            let page = list(&client(api)?, &query.finish(), *limit, after.as_deref()).await?;
            Ok(if api.json { Said::json(&page) } else { Said::text(table::keys(&page)) })
        }
        Keys::Show { api, id } => {
            let key = client(api)?.get(&format!("/keys/{id}")).await?;
            Ok(Said::key(api, &key))
        }
        Keys::Lookup { api, name } => {
            let KeyName { route, key, scope } = key_name(name)?;
            let wanted = json!({ "route": route, "key": key, "scope": input::members(&scope)? });
            let key = client(api)?.post("/keys/lookup", &wanted).await?;
            Ok(Said::key(api, &key))
        }
        Keys::Path { config, name, json } => path(config, name, *json),
        Keys::Resolve { api, id, status, headers, body, decision } => {
            let body = body.as_deref().map(input::bytes).transpose()?.unwrap_or_default();
            let lines = headers.iter().map(|(name, value)| {
                let value = value.to_str().map_err(|_| usage("a header value is not ASCII"))?;
                Ok(json!([name.as_str(), value]))
            });
            let mut wanted = json!({
                "reason": decision.reason,
                "actor": actor(decision),
                "status": status,
                "headers": lines.collect::<Result<Vec<_>, Failed>>()?,
            });
            match String::from_utf8(body) {
                Ok(text) => wanted["body"] = text.into(),
                Err(bytes) => {
                    wanted["body_base64"] = BASE64_STANDARD.encode(bytes.as_bytes()).into();
                }
            }
            let key = client(api)?.post(&format!("/keys/{id}/resolve"), &wanted).await?;
            Ok(Said::decided(api, &key))
        }
        Keys::Release { api, id, force, decision } => {
            let wanted = json!({
                "reason": decision.reason,
                "actor": actor(decision),
                "force": force,
            });
            let key = client(api)?.post(&format!("/keys/{id}/release"), &wanted).await?;
            Ok(Said::decided(api, &key))
        }
    }
}

/// As many pages as it takes, as one.
async fn list(
    client: &ApiClient,
    filter: &str,
    limit: u64,
    after: Option<&str>,
) -> Result<Value, Failed> {
    let (mut keys, mut unreadable) = (Vec::new(), Vec::new());
    let mut next = after.map(str::to_owned);
    loop {
        let wanted = limit.saturating_sub(keys.len() as u64).min(PAGE);
        let mut query = form_urlencoded::Serializer::new(filter.to_owned());
        query.append_pair("limit", &wanted.to_string());
        if let Some(after) = &next {
            query.append_pair("after", after);
        }
        let mut page = client.get(&format!("/keys?{}", query.finish())).await?;
        let mut take = |member: &str| match page[member].take() {
            Value::Array(values) => values,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => Vec::new(),
        };
        keys.append(&mut take("keys"));
        unreadable.append(&mut take("unreadable"));
        next = page["next"].as_str().map(str::to_owned);
        if next.is_none() || keys.len() as u64 >= limit {
            return Ok(json!({ "keys": keys, "unreadable": unreadable, "next": next }));
        }
    }
}

fn path(file: &Path, name: &Name, as_json: bool) -> Result<Said, Failed> {
    let Loaded { config, .. } = config::load(file, &ProcessEnvironment)
        .map_err(|mistakes| Failed::Usage(config::render_mistakes(&mistakes)))?;
    let id = app::key_id(&config, &key_name(name)?).map_err(|error| usage(&error.to_string()))?;
    if let config::LedgerKind::ZooKeeper(ensemble) = &config.ledger.kind {
        let znode = znode_of(&ensemble.root, &id);
        if as_json {
            return Ok(Said::json(&json!({ "id": id.to_string(), "znode": znode })));
        }
        return Ok(Said { text: format!("{znode}\n"), note: String::new() });
    }
    // No key of an embedded ledger has a znode.
    if as_json {
        return Ok(Said::json(&json!({ "id": id.to_string(), "znode": null })));
    }
    let note = "the embedded ledger has no znodes; this is the key id, for `oncegate keys show`\n";
    Ok(Said { text: format!("{id}\n"), note: note.to_owned() })
}

fn client(api: &ApiArguments) -> Result<ApiClient, Failed> {
    ApiClient::new(api.admin.clone(), input::token().as_ref())
        .map_err(|error| usage(&format!("ONCEGATE_ADMIN_TOKEN: {error}")))
}

fn key_name(name: &Name) -> Result<KeyName, Failed> {
    let scope = name.scope_from.as_deref().map(input::scope).transpose()?.unwrap_or_default();
    Ok(KeyName { route: name.route.clone(), key: name.key.clone(), scope })
}

fn actor(decision: &Decision) -> String {
    decision.actor.clone().unwrap_or_else(input::user)
}

fn usage(text: &str) -> Failed {
    Failed::Usage(text.to_owned())
}

// === impl Said ===

impl Said {
    fn text(text: String) -> Self {
        Self { text, note: String::new() }
    }

    fn json(value: &Value) -> Self {
        Self::text(format!("{value:#}\n"))
    }

    fn key(api: &ApiArguments, key: &Value) -> Self {
        if api.json { Self::json(key) } else { Self::text(table::key(key)) }
    }

    fn decided(api: &ApiArguments, key: &Value) -> Self {
        if api.json { Self::json(key) } else { Self::text(table::decided(key)) }
    }
}

// === impl Failed ===

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        match &error {
            // What was asked for is wrong in itself, as on the command line.
            ApiError::Refused { status, detail, .. } if status.as_u16() == 400 => {
                Self::Usage(detail.clone())
            }
            ApiError::Refused { .. } | ApiError::NotAsked(_) | ApiError::Foreign { .. } => {
                Self::Refused(Chain(&error).to_string())
            }
        }
    }
}
