//! Finding keys: by state and route, by id, and by the name that their client gave them.

use std::collections::BTreeMap;

use axum::{
    extract::{Path, RawQuery, Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::{
    super::{
        KeyName, NameError,
        problem::{Code, Problem},
    },
    Answered, Api, answer, body, view,
};
use crate::{
    domain::KeyId,
    ledger::{DecideError, KeyState, Query},
};

const PAGE: usize = 100;
const LARGEST_PAGE: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lookup {
    route: String,
    key: String,
    #[serde(default)]
    scope: BTreeMap<String, Lines>,
}

/// One header line, or several of one name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    One(String),
    Several(Vec<String>),
}

pub(super) async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> Answered {
    let page = api.operator.list(parse(&query.unwrap_or_default())?).await?;
    Ok(answer(view::page(&page, |key| api.directory.waiters(key))))
}

pub(super) async fn show(State(api): State<Api>, Path(id): Path<String>) -> Answered {
    shown(&api, key_id(&id)?).await
}

pub(super) async fn lookup(State(api): State<Api>, request: Request) -> Answered {
    let Lookup { route, key, scope } = body::read(request.into_body()).await?;
    let name = KeyName { route, key, scope: headers(scope)? };
    let key = api.directory.key_id(&name).map_err(|error| {
        let code = match error {
            NameError::NoRoute => Code::NoRoute,
            NameError::NotKeyed | NameError::Key(_) | NameError::Scope(_) => Code::BadRequest,
        };
        Problem::new(code, error)
    })?;
    shown(&api, key).await
}

async fn shown(api: &Api, key: KeyId) -> Result<Response, Problem> {
    match api.operator.show(key).await? {
        Some(entry) => Ok(answer(view::entry(&entry, api.directory.waiters(&key)))),
        None => Err(absent(&key)),
    }
}

/// Names the id: whoever looked a key up may want to look for it elsewhere.
fn absent(key: &KeyId) -> Problem {
    Problem::new(Code::KeyAbsent, format_args!("{} (id {key})", DecideError::Absent))
}

pub(super) fn key_id(text: &str) -> Result<KeyId, Problem> {
    text.parse().map_err(Problem::bad_request)
}

fn parse(query: &str) -> Result<Query, Problem> {
    let mut parsed = Query { limit: PAGE, ..Query::default() };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "state" => {
                parsed.state = Some(match &*value {
                    "in_progress" => KeyState::InProgress,
                    "unknown" => KeyState::Unknown,
                    "completed" => KeyState::Completed,
                    _ => {
                        let detail = "state: write in_progress, unknown or completed";
                        return Err(Problem::bad_request(detail));
                    }
                });
            }
            "route" if value.is_empty() => {}
            "route" => parsed.route = Some(value.into_owned()),
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=LARGEST_PAGE).contains(limit));
                parsed.limit = limit.ok_or_else(|| {
                    Problem::bad_request(format_args!("limit: write 1 to {LARGEST_PAGE}"))
                })?;
            }
            "after" => parsed.after = Some(value.into_owned()),
            _ => {
                let detail = "the query may have state, route, limit and after";
                return Err(Problem::bad_request(detail));
            }
        }
    }
    Ok(parsed)
}

/// What is wrong is told without the value, which is a credential.
fn headers(scope: BTreeMap<String, Lines>) -> Result<HeaderMap, Problem> {
    let mut headers = HeaderMap::new();
    for (name, lines) in scope {
        let name: HeaderName = name
            .parse()
            .map_err(|_| Problem::bad_request("scope: a member is not the name of a header"))?;
        let lines = match lines {
            Lines::One(line) => vec![line],
            Lines::Several(lines) => lines,
        };
        for line in lines {
            let mut value =
                HeaderValue::from_str(line.trim_matches([' ', '\t'])).map_err(|_| {
                    Problem::bad_request(format_args!("scope: {name} is not the value of a header"))
                })?;
            value.set_sensitive(true);
            headers.append(name.clone(), value);
        }
    }
    Ok(headers)
}
