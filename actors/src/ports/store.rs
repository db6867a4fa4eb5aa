//! Port to the store: the journal, and the data derived from it.
//!
//! Two rules bind every adapter. An append is acknowledged after it is durable and not before, in
//! the order of commits. An append that does not follow the newest one of its execution is rejected
//! whole, and the actor that sent it reloads.

mod ask_lists;
mod asks;
mod conversations;
mod derived;
mod errors;
mod execution_counts;
mod execution_end;
mod execution_filter;
mod execution_start;
mod generations;
mod known_tools;
mod logs;
mod page_size;
mod portion;
mod retention;
mod stored_json;
mod timers;
mod traces;
mod turn_timing;

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::domain::fact::McpCall;
use crate::domain::fact::{Others, Parent, Recorded, Suspension, Trace};
use crate::domain::failure::ErrorClass;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::slot::SlotSet;
use crate::domain::state::Outcome;
pub use crate::domain::status::Status;
use crate::domain::time::Timestamp;

pub use ask_lists::{AskCursor, AskFilter, AskPage, AskedOf, DueAsks, DueCursor};
pub use asks::{
    ASK_PREFIX, ASK_REASON_BYTES_MAX, AnswerKey, Ask, AskAnswer, AskChange, AskContent, AskKind,
    AskRevision, AskState, AskSubject, AskedCall, AskedStep, Asks, Claim, MissingAsks, NewAsk,
    OpenAskCounts,
};
pub use conversations::{
    ApprovedTools, Conversation, ConversationFilter, ConversationKey, ConversationPatch,
    ConversationWrite, Conversations, SCANNED_MESSAGES_MAX, SEARCHED_CHARS_MAX, SOUGHT_CHARS_MAX,
    StoredMessage, Written, is_too_short_for_index, sought_text,
};
pub use errors::{AppendError, ReadError};
pub use execution_counts::{CountsOfUser, ExecutionCount};
pub use execution_end::{EndRange, ExecutionEnd};
pub use execution_filter::{ExecutionFilter, IDS_SEARCHED_MAX, LIST_SEARCHED_MAX};
pub use execution_start::{ExecutionStart, StartRange};
pub use generations::{
    ContinuationChange, GenerationEntry, GenerationPage, GenerationRecord, GenerationStatus,
    GenerationStep, GenerationWrite, Generations, StepOrigin, StoredContinuation, UserCursor,
};
pub use known_tools::{KnownTool, KnownTools};
pub use logs::{LOG_BATCH_MAX, LogFilter, LogNumber, LogPage, Logs};
pub use page_size::{PageRoom, PageSize, PageTooLarge};
pub use portion::{FactCursor, Mark, Portion};
pub use retention::{Ended, EndedExecutions, EndedGenerations, Retention};
pub use stored_json::{STORED_DEPTH_MAX, read_stored};
pub use timers::{Timer, TimerChange, TimerKey};
pub use traces::{
    Root, RootCursor, RootFilter, RootPage, TraceQuery, TraceRecord, TraceRecordBuilder, TraceSize,
    TracedFacts, Traces,
};
pub use turn_timing::{AskedWith, Period, TurnError, TurnErrorKind, TurnTiming};

/// Number of an execution in the store.
pub type Row = i64;

/// Immutable properties of an execution, known from its first fact on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub id: ExecutionId,
    pub workflow_id: Arc<str>,
    pub definition_hash: Arc<str>,
    pub user_id: Option<Arc<str>>,
    pub conversation_id: Option<Arc<str>>,
    pub parent: Option<Parent>,
    pub trace: Trace,
    pub created_at: Timestamp,
}

/// Row of an execution, read by lists and recovery.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    pub header: Arc<Header>,
    pub status: Status,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Number of the last published event; 0 before the first.
    pub last_seq: u64,
    /// The suspension shown while `suspended`.
    pub suspension: Option<Arc<Suspension>>,
    /// Other open suspensions, as far as lists show them.
    pub others: Option<Arc<Others>>,
    /// Failure, shortened.
    pub error: Option<Arc<Failure>>,
    /// Replayed execution; absent in rows of older versions.
    pub replayed_from: Option<ReplayedFrom>,
}

/// Replayed execution, and the step that ran again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedFrom {
    pub execution: ExecutionId,
    pub step_id: Arc<str>,
}

impl Projection {
    /// Erases a user.
    pub fn forget(&mut self, user: &str) {
        if let Some(shown) = &mut self.suspension {
            Arc::make_mut(shown).forget(user);
        }
        if let Some(others) = &mut self.others {
            Arc::make_mut(others).forget(user);
        }
    }
}

/// Failure of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub message: Arc<str>,
    /// Failed step; `None` if the execution failed as a whole.
    pub step_id: Option<Arc<str>>,
    /// Path of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<StepPath>,
    /// Absent in rows of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
}

impl Failure {
    /// Returns the failure, if this outcome is one.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Failed { error, step_id, path, class } => Some(Self {
                message: Arc::clone(error),
                step_id: step_id.clone(),
                path: path.clone(),
                class: *class,
            }),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => None,
        }
    }
}

/// Maximum bytes of a failure's message in a row: a list shows hundreds of them.
pub const ROW_ERROR_BYTES_MAX: usize = 500;

/// Identifies the sender of an append: a shard, and a key that it chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    pub shard: usize,
    pub key: u64,
}

/// A stored `Idempotency-Key` of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    /// Route, execution (of a resume), user and key, joined by the front end.
    pub scope: Arc<str>,
    /// Hash of the body.
    pub body_hash: Arc<str>,
    pub execution: ExecutionId,
    /// The answer is the first suspension or end after this event.
    pub after_seq: u64,
    pub expires_at: Timestamp,
}

/// One atomic append to an execution.
#[derive(Debug)]
pub struct Append {
    pub ticket: Ticket,
    pub row: Row,
    /// Number of the append within its execution; 0 creates the execution. Any other must follow
    /// the stored revision: `last_seq` would not do, because facts without events do not advance
    /// it.
    pub revision: u64,
    pub projection: Projection,
    /// Facts in order; never empty.
    pub facts: Arc<[Recorded]>,
    /// Changes in order. A terminal projection removes the `Node` timers that remain after them.
    pub timers: Vec<TimerChange>,
    /// Changes of asks that follow from the facts, in order.
    pub asks: Vec<AskChange>,
    /// Rejected with [`AppendError::KeyTaken`] if the scope is taken and has not expired at the
    /// projection's `updated_at`; checked before anything else.
    pub idempotency: Option<IdempotencyRecord>,
    /// Snapshot of the machine after these facts.
    pub snapshot: Option<Vec<u8>>,
}

/// Snapshot of an execution that is unloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub execution: ExecutionId,
    pub row: Row,
    /// Must be the stored revision; an outdated snapshot is ignored.
    pub revision: u64,
    /// State of the machine after all stored and queued facts.
    pub state: Vec<u8>,
}

/// Outcome of an append.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    pub ticket: Ticket,
    /// `last_seq` of the appended projection.
    pub upto: u64,
    pub result: Result<(), AppendError>,
}

/// Receiver of commits: the actors' side of the journal.
pub trait CommitSink: Send + Sync {
    /// Receives all outcomes of one commit for one shard, in commit order. Called on the writer's
    /// thread; must not block.
    fn committed(&self, shard: usize, outcomes: Vec<Acknowledgement>);

    /// Returns true if [`CommitSink::publish`] has a receiver.
    fn wants_facts(&self) -> bool;

    /// Receives the facts of one commit, in commit order. Called on the writer's thread before
    /// `committed`; must not block.
    fn publish(&self, facts: Vec<(Arc<Header>, Arc<[Recorded]>)>);
}

/// A stored execution.
#[derive(Debug, Clone)]
pub struct StoredExecution {
    pub row: Row,
    /// Number of the newest append.
    pub revision: u64,
    pub projection: Projection,
    /// Newest snapshot, and the `last_seq` it includes.
    pub snapshot: Option<(u64, Vec<u8>)>,
    /// All facts after the append that stored the snapshot (all facts without one). Not selected by
    /// number: a fact without events does not advance `last_seq`.
    pub facts: Vec<Recorded>,
}

/// Position in the list; older rows follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Creation time; in a list by end, the end time.
    pub at: Timestamp,
    pub row: Row,
}

pub type Read<'a, T> = BoxFuture<'a, Result<T, ReadError>>;

/// Writes of executions. One writer commits all queued requests in one transaction.
pub trait Journal: Send + Sync {
    /// Returns the name of its technology, as `GET /observability/status` shows it.
    fn technology(&self) -> &'static str {
        "custom"
    }

    /// Returns true if what it stores outlives the process.
    fn is_persistent(&self) -> bool {
        true
    }

    /// Sets the receiver of commits. Called once, before the first append.
    fn attach(&self, sink: Arc<dyn CommitSink>);

    /// Commits queued requests and closes; blocks. Later requests fail.
    fn close(&self);

    /// Returns a new row number. Never blocks; `None` if the store has none left until it answers
    /// again.
    fn next_row(&self) -> Option<Row>;

    /// Queues an append. Never blocks; the sink gets the outcome. Appends of one shard are
    /// committed in the order in which they were queued.
    fn append(&self, append: Append);

    /// Queues a snapshot that replaces an older one, behind the appends of the shard. Never blocks,
    /// and may be lost: facts suffice to rebuild.
    fn store_snapshot(&self, shard: usize, snapshot: Snapshot);

    /// Returns true if writes are expected to succeed.
    fn is_writable(&self) -> bool {
        true
    }

    /// Resolves when every append that was queued before the call has an outcome, and fails if that
    /// takes too long. The default suffices for a store of one process whose
    /// [`Conversations::forget_user`] comes behind them.
    fn settled(&self) -> Written<()> {
        Box::pin(ready(Ok(())))
    }

    /// Queues timer changes without facts (removal of a fired timer that is no longer needed),
    /// behind the appends of the shard.
    fn change_timers(&self, shard: usize, changes: Vec<TimerChange>);
}

/// Reads of executions. The defaults read other lists; a large store has indexes for them.
pub trait Executions: Send + Sync {
    /// Returns the whole execution, if it exists.
    fn load<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>>;

    /// Returns the row only.
    fn describe<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<Projection>> {
        Box::pin(async move { Ok(self.load(id).await?.map(|stored| stored.projection)) })
    }

    /// Returns facts with numbers above `after`, oldest first, at most `limit` of them with events:
    /// facts without events do not count, so that a page always makes progress. The next page
    /// follows the last event, `next_seq() - 1` of the last fact.
    fn facts<'a>(
        &'a self,
        id: &'a ExecutionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<Recorded>>;

    /// Returns about `bytes` of facts (as stored) from a place on, at least one with an event if
    /// there is one, so that a reader always makes progress. The cost depends only on the size of
    /// the result if `from` comes from the previous portion.
    fn portion<'a>(
        &'a self,
        id: &'a ExecutionId,
        from: FactCursor,
        bytes: usize,
    ) -> Read<'a, Portion> {
        Box::pin(derived::portion(self, id, from, bytes))
    }

    /// Returns at most `limit` rows, newest first, and the next page's cursor. A list by end may
    /// return a short page, so that its cost is bounded.
    fn list<'a>(
        &'a self,
        filter: &'a ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Read<'a, (Vec<Projection>, Option<Cursor>)>;

    /// Returns the number of stored executions by workflow and status, without zeros. The cost does
    /// not depend on the number of executions.
    fn counts(&self) -> Read<'_, Vec<ExecutionCount>> {
        Box::pin(derived::counts(self))
    }

    /// Returns the counts of a user's newest `limit` executions.
    fn counts_of_user<'a>(&'a self, user_id: &'a str, limit: usize) -> Read<'a, CountsOfUser> {
        Box::pin(derived::counts_of_user(self, user_id, limit))
    }

    /// Returns at most `limit` ends of a range, last ended first. The cost does not depend on the
    /// length of the period.
    fn ends<'a>(&'a self, range: &'a EndRange, limit: usize) -> Read<'a, Vec<ExecutionEnd>> {
        Box::pin(derived::ends(self, range, limit))
    }

    /// Returns at most `limit` starts of a range, the newest first.
    fn starts<'a>(&'a self, range: &'a StartRange, limit: usize) -> Read<'a, Vec<ExecutionStart>> {
        Box::pin(derived::starts(self, range, limit))
    }

    /// Returns executions of these slots with status `running`, oldest first, after the given row.
    fn running<'a>(
        &'a self,
        slots: &'a SlotSet,
        after: Row,
        limit: usize,
    ) -> Read<'a, Vec<(Row, ExecutionId)>>;

    /// Returns timers of executions of these slots that are due before `until`, soonest first; those
    /// that are due at the same time by execution and key.
    fn timers_due<'a>(
        &'a self,
        slots: &'a SlotSet,
        until: Timestamp,
        limit: usize,
    ) -> Read<'a, Vec<Timer>>;

    /// Returns all timers of an execution, in no order.
    fn timers_of<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Vec<Timer>>;

    /// Returns the idempotency record of a scope unless it has expired.
    fn idempotency<'a>(
        &'a self,
        scope: &'a str,
        now: Timestamp,
    ) -> Read<'a, Option<IdempotencyRecord>>;
}

/// Definitions by hash, so that an execution keeps the one it started with.
pub trait Definitions: Send + Sync {
    fn put_definition<'a>(&'a self, hash: &'a str, definition: &'a Value) -> Read<'a, ()>;
    fn definition<'a>(&'a self, hash: &'a str) -> Read<'a, Option<Value>>;
}

/// All ports of one store.
pub trait Store:
    Journal
    + Executions
    + Asks
    + Definitions
    + KnownTools
    + Generations
    + Conversations
    + Traces
    + Logs
    + Retention
{
}

impl<T> Store for T where
    T: Journal
        + Executions
        + Asks
        + Definitions
        + KnownTools
        + Generations
        + Conversations
        + Traces
        + Logs
        + Retention
{
}
