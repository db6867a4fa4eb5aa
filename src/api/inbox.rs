//! Use cases of the inbox: list, describe, answer and change asks.

mod changes;
mod form_answer;
mod links;
mod query;

use greenroom_actors::Runtime;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Ask, AskCursor};
use greenroom_actors::requests::AskDetail;
use greenroom_actors::runtime::AskNews;
use tokio::sync::broadcast::Receiver;

use self::query::{Lists, visible_to};
use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::wire::inbox::ask_cursor_text;

pub use self::changes::{Change, answer, assign, claim, release, revision_of};
pub use self::form_answer::{
    Arguments, AskForm, DATA, DECISION, DECLINE, Mistake, REASON, ValueForm, choice_text,
    control_of, declining,
};
pub use self::links::{Link, Links, answer_with_link, follow_link, make_link, page_for};
pub use self::query::{AskQuery, Watch};

/// A page of asks, the cursor of the next one, and whether asks are missing.
#[derive(Debug, Default)]
pub struct Inbox {
    pub asks: Vec<Ask>,
    pub next: Option<String>,
    pub is_incomplete: bool,
}

/// Lists the asks that the caller sees.
pub async fn list(runtime: &Runtime, query: AskQuery, caller: &Caller) -> Result<Inbox, ApiError> {
    let AskQuery { filter, lists, mut after, is_over, limit } = query;
    let Some(mut filter) = visible_to(filter, caller) else { return Ok(Inbox::default()) };
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

/// Watches the asks.
pub async fn watch(runtime: &Runtime) -> Result<Receiver<AskNews>, ApiError> {
    Ok(runtime.watch_asks().await?)
}
