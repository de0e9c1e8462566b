//! What happens to retries, and for how long a key is remembered.

use http::StatusCode;

use super::value::Value;
use crate::{
    config::{
        fields::RETRY_ATTEMPTS,
        model::{Disposition, InProgress, OnSessionLoss, Responses, UnknownOutcome},
        units::Measure,
    },
    domain::Retention,
};

pub(super) fn read_in_progress(policy: &Value<'_>) -> Option<InProgress> {
    if policy.is_block() {
        return policy.duration("wait").map(InProgress::Wait);
    }
    policy.text().map(|_reject| InProgress::Reject)
}

pub(super) fn read_unknown_outcome(policy: &Value<'_>) -> Option<UnknownOutcome> {
    let attempts = if policy.is_block() {
        policy.get("retry")?.get("attempts")?.number(Measure::Count)?
    } else if policy.text()? == "retry" {
        Measure::Count.read(RETRY_ATTEMPTS, &(0..=u64::MAX)).ok()?
    } else {
        return Some(UnknownOutcome::Reject);
    };
    Some(UnknownOutcome::Retry { attempts: u32::try_from(attempts).ok()? })
}

pub(super) fn read_on_session_loss(
    rules: &Value<'_>,
    unknown_outcome: Option<UnknownOutcome>,
) -> Option<OnSessionLoss> {
    let field = rules.get("on_session_loss")?;
    if field.text()? != "settle" {
        return Some(OnSessionLoss::Abort);
    }
    if let Some(UnknownOutcome::Retry { .. }) = unknown_outcome {
        field.mistake(
            "a call left to finish would race the retry that `unknown_outcome` allows",
            "write `abort`, or `unknown_outcome: reject`",
        );
        return None;
    }
    Some(OnSessionLoss::Settle)
}

pub(super) fn read_retention(retention: &Value<'_>) -> Option<Retention> {
    let unknown = match retention.get("unknown")?.text()? {
        "never" => None,
        _ => Some(retention.duration("unknown")?),
    };
    Some(Retention { completed: retention.duration("completed")?, unknown })
}

pub(super) fn read_responses(responses: &Value<'_>) -> Option<Responses> {
    const WORDS: [(&str, Disposition); 3] = [
        ("store", Disposition::Store),
        ("release", Disposition::Release),
        ("unknown", Disposition::Unknown),
    ];
    let mut table = Responses::default();
    let mut is_whole = responses.is_block();
    for (status, word) in responses.entries() {
        let disposition = responses.word(status, &WORDS);
        let Some(selector) = Selector::read(status) else {
            if let Some(status) = responses.named(status) {
                let right = "write a status from 200 to 599 or a class from `2xx` to `5xx`";
                status.mistake("this is neither a status nor a class", right);
            }
            is_whole = false;
            continue;
        };
        let Some(disposition) = disposition else {
            is_whole = false;
            continue;
        };
        if selector.class() == 2 && disposition == Disposition::Release {
            word.mistake(
                "a 2xx answer says that the request was executed: with its key free, a retry \
                 would run it again",
                "write `store`",
            );
            is_whole = false;
        }
        let earlier = match selector {
            Selector::Exact(status) => table.exact.insert(status, disposition),
            Selector::Class(class) => table.classes.insert(class, disposition),
        };
        if earlier.is_some() {
            word.mistake("the same status stands in this table before", "keep one of them");
            is_whole = false;
        }
    }
    is_whole.then_some(table)
}

/// What a line of the table speaks of.
#[derive(Clone, Copy)]
enum Selector {
    Exact(StatusCode),
    Class(u16),
}

// === impl Selector ===

impl Selector {
    fn read(text: &str) -> Option<Self> {
        if let Some(class) = text.strip_suffix("xx") {
            let class = class.parse().ok().filter(|class| (2..=5).contains(class))?;
            return (text.len() == 3).then_some(Self::Class(class));
        }
        let status: u16 = text.parse().ok().filter(|status| (200..=599).contains(status))?;
        StatusCode::from_u16(status).ok().filter(|_| text.len() == 3).map(Self::Exact)
    }

    fn class(self) -> u16 {
        match self {
            Self::Exact(status) => status.as_u16() / 100,
            Self::Class(class) => class,
        }
    }
}
