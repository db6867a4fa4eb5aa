//! Use cases of the inbox: list, describe and answer asks.

use greenroom_actors::Runtime;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Ask, AskCursor, AskFilter, AskKind};
use greenroom_actors::requests::{AnswerAsk, AskDetail};
use greenroom_actors::visibility::Visibility;
use serde_json::Value;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::executions::Sent;
use crate::api::json::{self, Object};
use crate::api::query::{
    LIMIT_DEFAULT, LIMIT_MAX, Pairs, read, read_limit, read_name, refuse_unknown, time_from,
};
use crate::api::wire::inbox::{AnswerBody, ask_cursor_of, ask_cursor_text};
use crate::api::workflows::idempotency;

/// Requested page of asks.
#[derive(Debug)]
pub struct AskQuery {
    filter: AskFilter,
    lists: Lists,
    after: Option<AskCursor>,
    /// True if nothing is listed behind the cursor.
    is_over: bool,
    limit: usize,
}

/// Asks to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    Open,
    Closed,
    /// The open ones, then the closed ones.
    All,
}

impl AskQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        const NAMES: [&str; 7] =
            ["state", "kind", "workflowId", "userId", "due", "limit", "cursor"];
        refuse_unknown(pairs, &NAMES)?;
        let lists = read(pairs, "state", "must be one of open, closed, all", |name| match name {
            "open" => Some(Lists::Open),
            "closed" => Some(Lists::Closed),
            "all" => Some(Lists::All),
            _ => None,
        })?;
        let lists = lists.unwrap_or(Lists::Open);
        let kinds = AskKind::ALL.map(AskKind::as_str).join(", ");
        let kind_of = |name: &str| AskKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        let after = read(pairs, "cursor", "must be a nextCursor of this list", ask_cursor_of)?;
        // The order is that of all asks: open ones are before closed ones.
        let after = after.filter(|(is_open, _)| !(lists == Lists::Closed && *is_open));
        let is_over = lists == Lists::Open && after.is_some_and(|(is_open, _)| !is_open);
        let filter = AskFilter {
            is_open: after.map_or(lists != Lists::Closed, |(is_open, _)| is_open),
            kind: read(pairs, "kind", &format!("must be one of {kinds}"), kind_of)?,
            workflow_id: read_name(pairs, "workflowId")?,
            user_id: read_name(pairs, "userId")?,
            due_before: time_from(pairs, "due")?,
        };
        let limit = read_limit(pairs, LIMIT_DEFAULT, LIMIT_MAX)?;
        let after = after.map(|(_, place)| place);
        Ok(Self { filter, lists, after, is_over, limit })
    }
}

/// A page of asks, the cursor of the next one, and whether asks are missing.
#[derive(Debug, Default)]
pub struct Inbox {
    pub asks: Vec<Ask>,
    pub next: Option<String>,
    pub is_incomplete: bool,
}

/// Lists the asks that the caller sees.
pub async fn list(runtime: &Runtime, query: AskQuery, caller: &Caller) -> Result<Inbox, ApiError> {
    let AskQuery { mut filter, lists, mut after, is_over, limit } = query;
    filter.user_id = match (caller.visibility(), filter.user_id) {
        (Visibility::Everything, named) => named,
        (Visibility::Of(id), None) => Some(id.to_string()),
        (Visibility::Of(id), Some(named)) if *named == *id => Some(named),
        (Visibility::Of(_), Some(_)) | (Visibility::Nothing, _) => return Ok(Inbox::default()),
    };
    let is_incomplete = runtime.is_inbox_incomplete().await?;
    let mut inbox = Inbox { is_incomplete, ..Inbox::default() };
    if is_over {
        return Ok(inbox);
    }
    loop {
        let page = runtime.inbox(&filter, after, limit - inbox.asks.len()).await?;
        inbox.asks.extend(page.asks);
        if let Some(next) = page.next {
            inbox.next = Some(ask_cursor_text(filter.is_open, next));
            return Ok(inbox);
        }
        if !filter.is_open || lists != Lists::All {
            return Ok(inbox);
        }
        (filter.is_open, after) = (false, None);
        if inbox.asks.len() == limit {
            inbox.next = Some(ask_cursor_text(false, FIRST_CLOSED));
            return Ok(inbox);
        }
    }
}

/// Place before the first closed ask.
const FIRST_CLOSED: AskCursor =
    AskCursor { at: Timestamp(i64::MAX), then: Timestamp(i64::MAX), row: i64::MAX };

/// Finds an ask that the caller sees.
pub async fn find(runtime: &Runtime, id: &str, caller: &Caller) -> Result<Ask, ApiError> {
    let found = runtime.find_ask(id, &caller.visibility()).await;
    found.map_err(|error| ApiError::from_ask(id, error))
}

/// Shows an ask with what is needed to answer it.
pub async fn describe(runtime: &Runtime, ask: Ask) -> Result<AskDetail, ApiError> {
    let id = ask.id.clone();
    runtime.describe_ask(ask).await.map_err(|error| ApiError::from_ask(&id, error))
}

/// Answers an ask.
pub async fn answer(
    runtime: &Runtime,
    ask: Ask,
    body: Sent<'_>,
    key: Option<&str>,
    caller: &Caller,
) -> Result<AskDetail, ApiError> {
    let bytes = body.map_err(Clone::clone)?;
    let AnswerBody { data, options } = json::parse_closed_or_empty(bytes)?;
    let Object(options) = options.unwrap_or_default();
    let by = caller.principal(options.user_id.as_deref())?;
    let user_id = caller.user_id(options.user_id);
    let id = ask.id.clone();
    let idempotency = idempotency(key, "answer", &id, user_id.as_deref(), bytes)?;
    let answer = AnswerAsk { data: data.unwrap_or(Value::Null), by, idempotency };
    runtime.answer_ask(ask, answer).await.map_err(|error| ApiError::from_ask(&id, error))
}
