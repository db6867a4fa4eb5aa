//! Lists of asks: filters, and places in them.

use crate::domain::assignment::Assignee;
use crate::domain::time::Timestamp;
use crate::ports::store::{Ask, AskKind, Row};

/// Filter of lists. `None` accepts everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskFilter {
    /// True: those that are open, by deadline, then the oldest first. False: those that are closed,
    /// the last closed first.
    pub is_open: bool,
    pub kind: Option<AskKind>,
    pub workflow_id: Option<String>,
    pub agent_id: Option<String>,
    pub user_id: Option<String>,
    pub to: Option<AskedOf>,
    /// True: asks with a claim that has not ended at [`AskFilter::now`]; false: others.
    pub is_claimed: Option<bool>,
    /// Time of the request.
    pub now: Timestamp,
    /// Asks whose deadline is before this time.
    pub due_before: Option<Timestamp>,
}

/// Assignment of asks in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedOf {
    /// Without an assignment.
    Unassigned,
    User(String),
    Role(String),
    /// A user with these roles may answer it, assigned or not.
    Answerable {
        user: Option<String>,
        roles: Vec<String>,
    },
}

/// Place of an ask in a list: the deadline of one that is open (the last time there is, without
/// one) and the time when it opened, or twice the time when it was closed; then its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskCursor {
    pub at: Timestamp,
    pub then: Timestamp,
    pub row: Row,
}

/// A page of asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskPage {
    pub asks: Vec<Ask>,
    /// Place of the last ask looked at, if more may follow. A page may be shorter than its limit.
    pub next: Option<AskCursor>,
}

/// Place among asks with something due: the time, then the number of the ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueCursor {
    pub at: Timestamp,
    pub row: Row,
}

/// A page of asks with something due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueAsks {
    pub asks: Vec<Ask>,
    /// Place of the last ask looked at, if more may follow. A page may be shorter than its limit.
    pub next: Option<DueCursor>,
}

impl AskFilter {
    /// Returns true if an ask of the list matches the filter.
    pub fn matches(&self, ask: &Ask) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == value)
        };
        self.kind.is_none_or(|kind| kind == ask.kind)
            && is(&self.workflow_id, ask.workflow_id())
            && is(&self.agent_id, ask.agent_id())
            && is(&self.user_id, ask.user_id.as_deref())
            && self.to.as_ref().is_none_or(|to| to.includes(ask))
            && self.is_claimed.is_none_or(|claimed| ask.claim_at(self.now).is_some() == claimed)
            && self.due_before.is_none_or(|time| ask.deadline.is_some_and(|due| due < time))
    }
}

impl AskedOf {
    fn includes(&self, ask: &Ask) -> bool {
        let to = &ask.rules.to;
        match self {
            Self::Unassigned => to.is_empty(),
            Self::User(id) => {
                to.iter().any(|it| matches!(it, Assignee::User(user) if **user == **id))
            }
            Self::Role(name) => {
                to.iter().any(|it| matches!(it, Assignee::Role(role) if **role == **name))
            }
            Self::Answerable { user, roles } => {
                ask.rules.admits(user.as_deref(), roles, ask.user_id.as_deref())
            }
        }
    }
}

impl AskCursor {
    /// Returns the place of an ask.
    pub fn of(ask: &Ask, row: Row) -> Self {
        match ask.closed_at {
            None => {
                let at = ask.deadline.unwrap_or(Timestamp(i64::MAX));
                Self { at, then: ask.opened_at, row }
            }
            Some(closed) => Self { at: closed, then: closed, row },
        }
    }
}
