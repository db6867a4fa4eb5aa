//! Answers, claims and assignments of asks.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::Runtime;
use greenroom_actors::ports::store::Ask;
use greenroom_actors::requests::{
    ASSIGNEES_MAX, AnswerAsk, AskAccess, AskDetail, AskUpdate, Assignee, CLAIM_DEFAULT, CLAIM_MAX,
    Permissions,
};
use serde_json::Value;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::executions::Sent;
use crate::api::ids::check_id;
use crate::api::json::{self, Object};
use crate::api::query::digits;
use crate::api::wire::inbox::{AnswerBody, AskOptions, AssignBody, ClaimBody, ReleaseBody};
use crate::api::workflows::idempotency;

/// A request to change an ask that the caller sees.
#[derive(Debug)]
pub struct Change<'a> {
    pub runtime: &'a Runtime,
    pub ask: Ask,
    pub body: Sent<'a>,
    pub caller: &'a Caller,
    pub permissions: Permissions,
    /// Roles that may force a change.
    pub force_roles: &'a [String],
    /// The revision that the caller has seen, of `If-Match`.
    pub revision: Option<u64>,
}

/// Answers an ask.
pub async fn answer(change: Change<'_>, key: Option<&str>) -> Result<AskDetail, ApiError> {
    let bytes = change.body.map_err(Clone::clone)?;
    let AnswerBody { data, force, options } = json::parse_closed_or_empty(bytes)?;
    let Object(options) = options.unwrap_or_default();
    let by = change.caller.principal(options.user_id.as_deref())?;
    let access = change.access(force, &options)?;
    let user_id = change.caller.user_id(options.user_id);
    let id = Arc::clone(&change.ask.id);
    let owner = (change.caller, user_id.as_deref());
    let idempotency = idempotency(key, "answer", &id, owner, bytes)?;
    let answer = AnswerAsk { data: data.unwrap_or(Value::Null), by, access, idempotency };
    let answered = change.runtime.answer_ask(change.ask, answer).await;
    answered.map_err(|error| ApiError::from_ask(&id, error))
}

/// Claims an ask for the caller.
pub async fn claim(change: Change<'_>) -> Result<AskDetail, ApiError> {
    let bytes = change.body.map_err(Clone::clone)?;
    let ClaimBody { lasts, force, options } = json::parse_closed_or_empty(bytes)?;
    let lasts = lasts.as_deref().map_or(Ok(CLAIM_DEFAULT), claim_duration)?;
    let access = change.access(force, &options.map(|Object(it)| it).unwrap_or_default())?;
    let user = access.answerer.as_ref().and_then(|answerer| answerer.user.clone());
    let by = user.ok_or_else(|| nameless(change.caller))?;
    change.update(AskUpdate::Claim { by, lasts }, &access).await
}

/// Gives up the claim of an ask.
pub async fn release(change: Change<'_>) -> Result<AskDetail, ApiError> {
    let bytes = change.body.map_err(Clone::clone)?;
    let ReleaseBody { force, options } = json::parse_closed_or_empty(bytes)?;
    let access = change.access(force, &options.map(|Object(it)| it).unwrap_or_default())?;
    change.update(AskUpdate::Release, &access).await
}

/// Changes who is asked.
pub async fn assign(change: Change<'_>) -> Result<AskDetail, ApiError> {
    let bytes = change.body.map_err(Clone::clone)?;
    let AssignBody { to, force, options } = json::parse_closed_or_empty(bytes)?;
    let to = assignees(&to)?;
    let access = change.access(force, &options.map(|Object(it)| it).unwrap_or_default())?;
    change.update(AskUpdate::Assign { to }, &access).await
}

impl Change<'_> {
    pub(super) fn access(&self, force: bool, options: &AskOptions) -> Result<AskAccess, ApiError> {
        let named = options.user_id.as_deref();
        self.caller.principal(named)?;
        let is_privileged =
            self.caller.user().is_some_and(|user| user.has_one_of(self.force_roles));
        Ok(AskAccess {
            answerer: Some(self.caller.answerer(named)),
            is_forced: force && is_privileged,
            revision: self.revision,
            permissions: self.permissions.clone(),
        })
    }

    async fn update(self, update: AskUpdate, access: &AskAccess) -> Result<AskDetail, ApiError> {
        let id = Arc::clone(&self.ask.id);
        let updated = self.runtime.update_ask(self.ask, &update, access).await;
        updated.map_err(|error| ApiError::from_ask(&id, error))
    }
}

/// Returns the refusal of a claim without a user.
fn nameless(caller: &Caller) -> ApiError {
    if caller.is_auth_off() {
        ApiError::body("options.userId", "is required, to say who claims the ask")
    } else if caller.user().is_none() {
        ApiError::Unauthenticated
    } else {
        ApiError::NotYours
    }
}

fn claim_duration(text: &str) -> Result<Duration, ApiError> {
    let duration = humantime::parse_duration(text).ok();
    let duration = duration.filter(|it| !it.is_zero() && *it <= CLAIM_MAX);
    duration.ok_or_else(|| ApiError::body("for", "must be a duration such as \"30m\", at most 24h"))
}

fn assignees(texts: &[String]) -> Result<Vec<Assignee>, ApiError> {
    if texts.len() > ASSIGNEES_MAX {
        return Err(ApiError::body(
            "to",
            format!("must be at most {ASSIGNEES_MAX} users and roles"),
        ));
    }
    let parsed = texts.iter().enumerate().map(|(index, text)| {
        let place = format!("to[{index}]");
        let assignee = text.parse().map_err(|error| ApiError::body(&*place, error))?;
        check_user(&place, &assignee)?;
        Ok(assignee)
    });
    parsed.collect()
}

/// Refuses users whose id no caller can have.
pub(super) fn check_user(place: &str, assignee: &Assignee) -> Result<(), ApiError> {
    match assignee {
        Assignee::User(id) => check_id(place, id),
        Assignee::Role(_) | Assignee::NotSelf => Ok(()),
    }
}

/// Parses `If-Match`: the revision that the caller has seen, in quotes, or `*`.
pub fn revision_of(header: Option<&str>) -> Result<Option<u64>, ApiError> {
    let Some(text) = header.map(str::trim).filter(|text| *text != "*") else { return Ok(None) };
    let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let revision = number.filter(|number| !number.is_empty()).and_then(digits);
    revision.map(Some).ok_or_else(|| ApiError::InvalidHeader {
        name: "If-Match",
        what: "must be the ETag of the ask, which is its revision in quotes".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_names_one_revision() {
        let rows =
            [(None, None), (Some("*"), None), (Some("\"7\""), Some(7)), (Some(" \"0\" "), Some(0))];
        for (header, expected) in rows {
            assert_eq!(revision_of(header), Ok(expected), "{header:?}");
        }
        for bad in ["", "7", "\"\"", "\"x\"", "\"-1\"", "W/\"7\"", "\"1\", \"2\"", "\"", "\"+1\""] {
            let refused = revision_of(Some(bad)).unwrap_err();
            assert_eq!(
                (refused.status(), refused.code().as_str()),
                (400, "header_invalid"),
                "{bad}"
            );
        }
    }

    #[test]
    fn claims_last_at_most_a_day() {
        for (text, seconds) in [("30m", 1_800), ("1s", 1), ("24h", 86_400), ("1h 30m", 5_400)] {
            assert_eq!(claim_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "0s", "-1s", "25h", "24h 1ms", "soon", "30"] {
            assert_eq!(claim_duration(bad).unwrap_err().status(), 400, "{bad}");
        }
    }
}
