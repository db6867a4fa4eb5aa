//! Asks: what waits for a person.
//!
//! An ask is opened by the append that makes something wait, and closed by the one that lets it
//! continue: the facts of an execution decide, and its asks follow from them.

use std::sync::Arc;

use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::time::Timestamp;
use crate::ports::store::{Header, Read, Row, Written};

/// Maximum bytes of a reason: a list shows hundreds of them.
pub const ASK_REASON_BYTES_MAX: usize = 500;

/// Prefix of the ids of asks; the id of the suspension follows.
pub const ASK_PREFIX: &str = "ask_";

/// Origin of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskKind {
    /// A step suspends before it runs.
    Step,
    /// The function of a step suspended it.
    Function,
}

impl AskKind {
    pub const ALL: [Self; 2] = [Self::Step, Self::Function];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Function => "function",
        }
    }
}

/// State of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskState {
    Open,
    /// A caller answered.
    Answered,
    /// The deadline passed before an answer.
    Expired,
    /// The wait ended without an answer.
    Withdrawn,
}

impl AskState {
    pub const ALL: [Self; 4] = [Self::Open, Self::Answered, Self::Expired, Self::Withdrawn];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// A stored ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub id: Arc<str>,
    pub kind: AskKind,
    pub state: AskState,
    pub execution_id: ExecutionId,
    pub workflow_id: Arc<str>,
    pub path: StepPath,
    /// The execution's user.
    pub user_id: Option<Arc<str>>,
    /// Shortened.
    pub reason: Arc<str>,
    pub opened_at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// `None` while it is open.
    pub closed_at: Option<Timestamp>,
}

/// A change of the asks of an execution, in the append of the facts that it follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskChange {
    Open(NewAsk),
    /// Closes an ask; no effect if there is none that is open.
    Close {
        id: Arc<str>,
        state: AskState,
        at: Timestamp,
    },
}

/// An ask that opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAsk {
    pub id: Arc<str>,
    pub kind: AskKind,
    pub path: StepPath,
    /// At most [`ASK_REASON_BYTES_MAX`].
    pub reason: Arc<str>,
    pub opened_at: Timestamp,
    pub deadline: Option<Timestamp>,
}

/// All asks of an execution that a version wrote which knows none.
#[derive(Debug, Clone)]
pub struct MissingAsks {
    pub header: Arc<Header>,
    pub row: Row,
    /// Number of the execution's newest append when the asks were taken from it.
    pub revision: u64,
    /// Asks of everything that waits for a person.
    pub asks: Vec<NewAsk>,
    pub at: Timestamp,
}

/// Filter of lists. `None` accepts everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskFilter {
    /// True: those that are open, by deadline, then the oldest first. False: those that are closed,
    /// the last closed first.
    pub is_open: bool,
    pub kind: Option<AskKind>,
    pub workflow_id: Option<String>,
    pub user_id: Option<String>,
    /// Asks whose deadline is before this time.
    pub due_before: Option<Timestamp>,
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

/// Asks of executions, for lists.
pub trait Asks: Send + Sync {
    fn ask<'a>(&'a self, id: &'a str) -> Read<'a, Option<Ask>>;

    /// Returns a page of asks behind a place. Filters that no index serves are checked on a limited
    /// number of rows.
    fn asks<'a>(
        &'a self,
        filter: &'a AskFilter,
        after: Option<AskCursor>,
        limit: usize,
    ) -> Read<'a, AskPage>;

    /// Returns executions, by row, that have not ended and whose asks are not stored, because a
    /// version wrote them which knows none; at most `limit`, behind a row.
    fn executions_without_asks(
        &self,
        after: Row,
        limit: usize,
    ) -> Read<'_, Vec<(Row, ExecutionId)>>;

    /// Stores the asks of an execution, and withdraws others of it that are open. Returns false,
    /// and changes nothing, if the execution has changed since that revision.
    fn put_asks(&self, missing: MissingAsks) -> Written<bool>;
}

impl AskFilter {
    /// Returns true if an ask of the list matches the filter.
    pub fn matches(&self, ask: &Ask) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == value)
        };
        self.kind.is_none_or(|kind| kind == ask.kind)
            && is(&self.workflow_id, Some(&ask.workflow_id))
            && is(&self.user_id, ask.user_id.as_deref())
            && self.due_before.is_none_or(|time| ask.deadline.is_some_and(|due| due < time))
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
