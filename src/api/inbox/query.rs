//! The query of a list of asks.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{AskCursor, AskFilter, AskKind, AskedOf};
use greenroom_actors::requests::{Answerer, Assignee};
use greenroom_actors::runtime::AskNews;
use greenroom_actors::visibility::Visibility;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::query::{
    LIMIT_DEFAULT, LIMIT_MAX, Pairs, read, read_limit, read_name, refuse_unknown, time_from,
};
use crate::api::wire::inbox::ask_cursor_of;

/// Names of the parameters that say which asks are meant.
const FILTERS: [&str; 7] = ["kind", "workflowId", "agentId", "userId", "to", "claimed", "due"];

const NAMES: [&str; 10] =
    ["state", "kind", "workflowId", "agentId", "userId", "to", "claimed", "due", "limit", "cursor"];

const TO: &str = "must be me, none, user:<id> or role:<name>";

/// Requested page of asks.
#[derive(Debug)]
pub struct AskQuery {
    pub(super) filter: AskFilter,
    pub(super) lists: Lists,
    pub(super) after: Option<AskCursor>,
    /// True if nothing is listed behind the cursor.
    pub(super) is_over: bool,
    pub(super) limit: usize,
}

/// Asks to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    Open,
    Closed,
    /// The open ones, then the closed ones.
    All,
}

impl AskQuery {
    /// Parses the query of a caller.
    pub fn parse(pairs: &Pairs, caller: &Caller) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &NAMES)?;
        let lists = read(pairs, "state", "must be one of open, closed, all", |name| match name {
            "open" => Some(Lists::Open),
            "closed" => Some(Lists::Closed),
            "all" => Some(Lists::All),
            _ => None,
        })?;
        let lists = lists.unwrap_or(Lists::Open);
        let after = read(pairs, "cursor", "must be a nextCursor of this list", ask_cursor_of)?;
        // The order is that of all asks: open ones are before closed ones.
        let after = after.filter(|(is_open, _)| !(lists == Lists::Closed && *is_open));
        let is_over = lists == Lists::Open && after.is_some_and(|(is_open, _)| !is_open);
        let is_open = after.map_or(lists != Lists::Closed, |(is_open, _)| is_open);
        let filter = AskFilter { is_open, ..filter_of(pairs, caller)? };
        let limit = read_limit(pairs, LIMIT_DEFAULT, LIMIT_MAX)?;
        let after = after.map(|(_, place)| place);
        Ok(Self { filter, lists, after, is_over, limit })
    }
}

/// Asks whose changes a caller watches.
#[derive(Debug)]
pub struct Watch {
    /// `None` for a caller that sees none.
    filter: Option<AskFilter>,
}

impl Watch {
    /// Parses the query of a caller.
    pub fn parse(pairs: &Pairs, caller: &Caller) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &FILTERS)?;
        Ok(Self { filter: visible_to(filter_of(pairs, caller)?, caller) })
    }

    /// Returns true if the caller sees these news.
    pub fn includes(&self, news: &AskNews, now: Timestamp) -> bool {
        let Some(filter) = &self.filter else { return false };
        match news {
            AskNews::Changed { ask, .. } => AskFilter { now, ..filter.clone() }.matches(ask),
            AskNews::Overflow => true,
        }
    }
}

/// Parses which asks are meant, open or closed.
fn filter_of(pairs: &Pairs, caller: &Caller) -> Result<AskFilter, ApiError> {
    let kinds = AskKind::ALL.map(AskKind::as_str).join(", ");
    let kind_of = |name: &str| AskKind::ALL.into_iter().find(|kind| kind.as_str() == name);
    Ok(AskFilter {
        kind: read(pairs, "kind", &format!("must be one of {kinds}"), kind_of)?,
        workflow_id: read_name(pairs, "workflowId")?,
        agent_id: read_name(pairs, "agentId")?,
        user_id: read_name(pairs, "userId")?,
        to: read(pairs, "to", TO, |text| asked_of(text, caller))?,
        is_claimed: read(pairs, "claimed", "must be true or false", |text| text.parse().ok())?,
        due_before: time_from(pairs, "due")?,
        ..AskFilter::default()
    })
}

/// Narrows a filter to what the caller sees; `None` if that is nothing.
pub(super) fn visible_to(filter: AskFilter, caller: &Caller) -> Option<AskFilter> {
    let user_id = match (caller.visibility(), filter.user_id) {
        (Visibility::Everything, named) => named,
        (Visibility::Of(id), None) => Some(id.to_string()),
        (Visibility::Of(id), Some(named)) if *named == *id => Some(named),
        (Visibility::Of(_), Some(_)) | (Visibility::Nothing, _) => return None,
    };
    Some(AskFilter { user_id, ..filter })
}

/// Parses who is asked. `me` is the caller, with its roles.
fn asked_of(text: &str, caller: &Caller) -> Option<AskedOf> {
    match text {
        "me" => {
            let Answerer { user, roles } = caller.answerer(None);
            let roles = roles.iter().map(|role| role.to_string()).collect();
            return Some(AskedOf::Answerable { user: user.map(|user| user.to_string()), roles });
        }
        "none" => return Some(AskedOf::Unassigned),
        _ => {}
    }
    match text.parse().ok()? {
        Assignee::User(id) => Some(AskedOf::User(id.to_string())),
        Assignee::Role(name) => Some(AskedOf::Role(name.to_string())),
        Assignee::NotSelf => None,
    }
}
