//! Asks: what waits for a person.
//!
//! An ask is opened by the write that makes something wait, and closed by the one that lets it
//! continue: the facts of an execution and the continuation of a generation decide, and their asks
//! follow from them. Assignments and claims are the asks' own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::assignment::AskRules;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::principal::{Principal, strike};
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AskCursor, AskFilter, AskPage, DueAsks, DueCursor, Header, Read, Row, Written,
};

/// Maximum bytes of a reason: a list shows hundreds of them.
pub const ASK_REASON_BYTES_MAX: usize = 500;

/// Prefix of the ids of asks; the id of the suspension follows.
pub const ASK_PREFIX: &str = "ask_";

/// Origin of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// A step suspends before it runs.
    Step,
    /// The function of a step suspended it.
    Function,
    /// The compensation of a step has failed. Stores keep it as a function, with its path.
    Compensation,
    /// A tool runs only once a person approves the call.
    Approval,
    /// A tool asks a person for its result.
    Input,
}

impl AskKind {
    pub const ALL: [Self; 5] =
        [Self::Step, Self::Function, Self::Compensation, Self::Approval, Self::Input];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Function => "function",
            Self::Compensation => "compensation",
            Self::Approval => "approval",
            Self::Input => "input",
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
    pub subject: AskSubject,
    /// The user of the execution or the generation.
    pub user_id: Option<Arc<str>>,
    /// Shortened.
    pub reason: Arc<str>,
    pub opened_at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// `None` while it is open.
    pub closed_at: Option<Timestamp>,
    /// Number of changes of the rules and the claim.
    pub revision: u64,
    pub rules: AskRules,
    pub claim: Option<Claim>,
}

/// The step or call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskSubject {
    Step(AskedStep),
    Call(AskedCall),
}

/// A step that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedStep {
    pub execution_id: ExecutionId,
    pub workflow_id: Arc<str>,
    pub path: StepPath,
}

/// A call of a tool that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedCall {
    pub generation_id: Arc<str>,
    pub agent_id: Arc<str>,
    pub tool_call_id: Arc<str>,
    pub tool_name: Arc<str>,
    /// The step that asked the agent, if one did; not of the generations of sub-agents.
    pub step: Option<AskedStep>,
}

/// The intention of a user to answer, which others respect until it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub by: Arc<str>,
    pub until: Timestamp,
}

/// A change of the asks of an execution or a generation, in the write that it follows from.
#[derive(Debug, Clone, PartialEq)]
pub enum AskChange {
    Open(NewAsk),
    /// Closes an ask; no effect if there is none that is open.
    Close {
        id: Arc<str>,
        state: AskState,
        at: Timestamp,
        /// The answer, unless the facts of an execution have it.
        answer: Option<Arc<AskAnswer>>,
    },
}

/// An ask that opens.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAsk {
    pub id: Arc<str>,
    pub kind: AskKind,
    /// Path of the step, or id of the call.
    pub place: Arc<str>,
    /// Tool of the call.
    pub tool_name: Option<Arc<str>>,
    /// At most [`ASK_REASON_BYTES_MAX`].
    pub reason: Arc<str>,
    pub opened_at: Timestamp,
    pub deadline: Option<Timestamp>,
    pub rules: AskRules,
    /// Time of the first reminder, escalation or, of a call, deadline.
    pub next_due: Option<Timestamp>,
    /// Data that a person needs to answer, unless the facts of an execution have it.
    pub details: Option<Arc<Value>>,
}

impl NewAsk {
    /// Returns the ask as it opens, for the user of the execution or the generation.
    #[must_use]
    pub fn opened(self, subject: AskSubject, user_id: Option<Arc<str>>) -> Ask {
        let Self { id, kind, reason, opened_at, deadline, rules, .. } = self;
        Ask {
            id,
            kind,
            state: AskState::Open,
            subject,
            user_id,
            reason,
            opened_at,
            deadline,
            closed_at: None,
            revision: 0,
            rules,
            claim: None,
        }
    }
}

/// An answer, and who gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskAnswer {
    /// `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    pub data: Arc<Value>,
    /// The `Idempotency-Key` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AnswerKey>,
}

/// The `Idempotency-Key` of an answer, as hashes of its scope and of the body that came with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerKey {
    pub scope: Arc<str>,
    pub body: Arc<str>,
}

/// The parts of an ask that lists do not show. Empty for asks of executions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AskContent {
    pub details: Option<Arc<Value>>,
    pub answer: Option<AskAnswer>,
}

/// New rules and claim of an open ask.
#[derive(Debug, Clone, PartialEq)]
pub struct AskRevision {
    pub id: Arc<str>,
    /// The stored revision; the ask is not changed if it has another one, or is closed.
    pub revision: u64,
    pub rules: AskRules,
    pub claim: Option<Claim>,
    pub next_due: Option<Timestamp>,
}

/// Numbers of open asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenAskCounts {
    /// By kind, without zeros.
    pub by_kind: Vec<(AskKind, u64)>,
    /// Time when the oldest one opened.
    pub oldest: Option<Timestamp>,
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

/// Asks of executions and generations.
pub trait Asks: Send + Sync {
    fn ask<'a>(&'a self, id: &'a str) -> Read<'a, Option<Ask>>;

    /// Returns who may answer an ask, which is all that a resume needs of it.
    fn ask_rules<'a>(&'a self, id: &'a str) -> Read<'a, Option<AskRules>> {
        Box::pin(async move { Ok(self.ask(id).await?.map(|ask| ask.rules)) })
    }

    /// Returns what lists do not show; empty for an unknown ask.
    fn ask_content<'a>(&'a self, id: &'a str) -> Read<'a, AskContent>;

    /// Returns the asks of a generation, the first opened first.
    fn asks_of_generation<'a>(&'a self, id: &'a str) -> Read<'a, Vec<Ask>>;

    /// Returns open asks with something due at this time or before, the first due first; at most
    /// `limit`, behind a place.
    fn due_asks(&self, now: Timestamp, after: Option<DueCursor>, limit: usize)
    -> Read<'_, DueAsks>;

    /// Counts open asks; the cost grows with their number.
    fn open_ask_counts(&self) -> Read<'_, OpenAskCounts>;

    /// Changes rules and claim of an open ask, and increments its revision. Returns false if it is
    /// closed or has another revision.
    fn revise_ask(&self, revision: AskRevision) -> Written<bool>;

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

impl AskAnswer {
    /// Removes the user who gave the answer, and what the user wrote; returns true if it was this
    /// one.
    pub fn forget(&mut self, user: &str) -> bool {
        let is_by_user = strike(&mut self.by, user);
        if is_by_user {
            (self.data, self.key) = (Arc::new(Value::Null), None);
        }
        is_by_user
    }
}

impl Ask {
    /// Returns the workflow of a step.
    pub fn workflow_id(&self) -> Option<&str> {
        match &self.subject {
            AskSubject::Step(step) => Some(&step.workflow_id),
            AskSubject::Call(call) => call.step.as_ref().map(|step| &*step.workflow_id),
        }
    }

    /// Returns the agent of a call.
    pub fn agent_id(&self) -> Option<&str> {
        match &self.subject {
            AskSubject::Step(_) => None,
            AskSubject::Call(call) => Some(&call.agent_id),
        }
    }

    /// Returns the time of what is due next under these rules: a reminder, an escalation or, of a
    /// call, the deadline.
    pub fn next_due(&self, rules: &AskRules) -> Option<Timestamp> {
        let deadline = match self.subject {
            // the timer of the step is for that
            AskSubject::Step(_) => None,
            AskSubject::Call(_) => self.deadline,
        };
        rules.next_due(self.opened_at, Timestamp(i64::MIN)).into_iter().chain(deadline).min()
    }

    /// Returns the claim, if it has not ended.
    pub fn claim_at(&self, now: Timestamp) -> Option<&Claim> {
        self.claim.as_ref().filter(|claim| claim.until > now)
    }
}
