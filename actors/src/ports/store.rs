//! The journal and what is derived from it.
//!
//! Two rules bind every adapter. An append is acknowledged after it is durable and not before;
//! acknowledgements come in the order of the commits. And an append that does not start where
//! the stored execution ends is refused whole: the actor that sent it reloads.

mod conversations;
mod generations;
mod logs;
mod portion;
mod retention;
mod stored_json;
mod traces;
mod turn_timing;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::fact::{Others, Parent, Recorded, Suspension, Trace};
use crate::domain::failure::ErrorClass;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::state::Outcome;
pub use crate::domain::status::Status;
use crate::domain::time::Timestamp;

pub use conversations::{
    Conversation, ConversationFilter, ConversationKey, ConversationPatch, ConversationWrite,
    Conversations, SCANNED_MESSAGES_MAX, SEARCHED_CHARS_MAX, SOUGHT_CHARS_MAX, StoredMessage,
    Written, is_too_short_for_index, sought_text,
};
pub use generations::{
    GenerationEntry, GenerationPage, GenerationRecord, GenerationStatus, GenerationStep,
    GenerationWrite, Generations, StepOrigin,
};
pub use logs::{LogFilter, LogNumber, LogPage, Logs};
pub use portion::{Mark, Place, Portion};
pub use retention::{Ended, EndedExecutions, EndedGenerations, Retention};
pub use stored_json::{STORED_DEPTH_MAX, read_stored};
pub use traces::{Root, RootCursor, RootFilter, RootPage, TraceQuery, TraceRecord, Traces};
pub use turn_timing::{AskedWith, Period, TurnError, TurnErrorKind, TurnTiming};

/// The store's own number of an execution.
pub type Row = i64;

/// What an execution is, from its first fact on.
#[derive(Debug, Clone, PartialEq)]
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

/// The row of an execution that lists and recovery read.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    pub header: Arc<Header>,
    pub status: Status,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Number of the last event that went out; 0 before the first.
    pub last_seq: u64,
    /// The suspension shown while `suspended`.
    pub suspension: Option<Arc<Suspension>>,
    /// What it waits for beside that, as far as lists tell.
    pub others: Option<Arc<Others>>,
    /// Why it failed, shortened.
    pub error: Option<Arc<Failure>>,
    /// In the middle of which execution it began; rows of older versions do not say it.
    pub replayed_from: Option<ReplayedFrom>,
}

/// The execution that another one replays, and the step that began anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedFrom {
    pub execution: ExecutionId,
    pub step_id: Arc<str>,
}

impl Projection {
    /// Strikes a user from what it shows.
    pub fn forget(&mut self, user: &str) {
        if let Some(shown) = &mut self.suspension {
            Arc::make_mut(shown).forget(user);
        }
        if let Some(others) = &mut self.others {
            Arc::make_mut(others).forget(user);
        }
    }
}

/// Why an execution failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub message: Arc<str>,
    /// The step that failed; none where the execution as a whole did.
    pub step_id: Option<Arc<str>>,
    /// Where the step is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<StepPath>,
    /// None of what an earlier version recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
}

impl Failure {
    /// Returns why an execution failed, if this is how it ended.
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

/// Bytes of a failure's message that a row has: a list shows hundreds of them.
pub const ROW_ERROR_BYTES_MAX: usize = 500;

/// How many executions of a workflow stand where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionCount {
    pub workflow_id: Arc<str>,
    pub status: Status,
    pub count: u64,
}

/// The counts of one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountsOfUser {
    /// By workflow and status; what there is none of is left out.
    pub counts: Vec<ExecutionCount>,
    /// Whether all executions of the user were counted.
    pub is_complete: bool,
}

/// Identifies who asked for an append: a shard and a key of its own choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    pub shard: usize,
    pub key: u64,
}

/// Something that has to happen to an execution at a time, kept by the store.
/// One per (execution, key); arming it again moves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    pub execution: ExecutionId,
    pub key: TimerKey,
    pub due: Timestamp,
}

/// What a timer is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimerKey {
    /// The node at this path has waited long enough.
    Node(Arc<str>),
    /// A child said something that its parent has not recorded yet: ask the child.
    AskChild(ExecutionId),
    /// The parent of this execution no longer wants it.
    Abandoned,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerChange {
    Arm(Timer),
    Disarm { execution: ExecutionId, key: TimerKey },
}

/// A caller's `Idempotency-Key`, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Route, execution (of a resume), user and key, joined by the front end.
    pub scope: Arc<str>,
    /// Fingerprint of the body.
    pub body_hash: Arc<str>,
    pub execution: ExecutionId,
    /// The answer is the first rest of the execution after this number.
    pub after_seq: u64,
    pub expires_at: Timestamp,
}

/// One atomic addition to an execution's record.
#[derive(Debug)]
pub struct Append {
    pub ticket: Ticket,
    pub row: Row,
    /// The execution's `last_seq` in the store; `None` creates the execution.
    pub expected: Option<u64>,
    pub projection: Projection,
    /// Never empty. Facts in order.
    pub facts: Arc<[Recorded]>,
    /// Changes in order. A terminal projection drops the `Node` timers that the execution still
    /// has after them.
    pub timers: Vec<TimerChange>,
    /// Refused with [`AppendError::KeyTaken`] when the scope is taken and has not expired at the
    /// projection's `updated_at`; looked at before anything else.
    pub idempotency: Option<IdempotencyRecord>,
    /// The machine's state after these facts, to rebuild from.
    pub snapshot: Option<Vec<u8>>,
}

/// The state of an execution that leaves memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub execution: ExecutionId,
    pub row: Row,
    /// What the stored execution's must be: a state that others have gone beyond is not kept.
    pub last_seq: u64,
    /// The machine's state after all facts that are stored or queued.
    pub state: Vec<u8>,
}

/// Why an append was not taken. Nothing of it was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    #[error("an execution with this id exists")]
    Exists,
    #[error("the stored execution has moved on")]
    Stale,
    #[error("the idempotency key is taken")]
    KeyTaken,
    #[error("the store does not take writes: {0}")]
    Unavailable(Arc<str>),
}

/// The outcome of an append.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    pub ticket: Ticket,
    /// `last_seq` of the appended projection.
    pub upto: u64,
    pub result: Result<(), AppendError>,
}

/// Hears of commits: the actors' side of the journal.
pub trait CommitSink: Send + Sync {
    /// Takes all outcomes of one commit that belong to one shard, in commit order.
    /// Called on the writer's thread; must not block.
    fn committed(&self, shard: usize, outcomes: Vec<Acknowledgement>);

    /// Whether anybody wants [`CommitSink::publish`] just now.
    fn wants_facts(&self) -> bool;

    /// Takes the facts of one commit, in commit order. Called on the writer's thread before
    /// `committed`; must not block.
    fn publish(&self, facts: Vec<(Arc<Header>, Arc<[Recorded]>)>);
}

/// An execution as it is stored.
#[derive(Debug, Clone)]
pub struct StoredExecution {
    pub row: Row,
    pub projection: Projection,
    /// The newest state kept, and the `last_seq` it includes.
    pub snapshot: Option<(u64, Vec<u8>)>,
    /// All facts recorded after the append that brought the snapshot (all facts without one).
    /// Not told apart by numbers: a fact that gives no event does not move `last_seq`.
    pub facts: Vec<Recorded>,
}

/// Which executions a list shows. All filters are combined.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    pub workflow_id: Option<String>,
    pub status: Option<Status>,
    pub user_id: Option<String>,
    /// Created at or after.
    pub from: Option<Timestamp>,
    /// Created before.
    pub to: Option<Timestamp>,
    /// Ended at or after.
    pub ended_from: Option<Timestamp>,
    /// Ended before.
    pub ended_to: Option<Timestamp>,
    /// Replays of this execution.
    pub replay_of: Option<String>,
}

impl ExecutionFilter {
    /// Whether the list is of ends: those that ended last come first, and what has not ended is
    /// left out.
    pub fn is_of_ends(&self) -> bool {
        self.ended_from.is_some() || self.ended_to.is_some()
    }
}

/// A place in the list: rows older than this one follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// When the row was created; in a list of ends, when it ended.
    pub at: Timestamp,
    pub row: Row,
}

/// Failure to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The store does not answer. It may later.
    #[error("the store cannot be read: {0}")]
    Unavailable(Arc<str>),
    /// It answers, and what it has of the one thing that is named makes no sense: asking again does
    /// not help. The store itself has told why. Lists and searches leave such things out instead.
    #[error("the record of {0} is corrupt")]
    Corrupt(Arc<str>),
}

pub type Read<'a, T> = BoxFuture<'a, Result<T, ReadError>>;

/// The append side. One writer drains what is queued into one transaction.
pub trait Journal: Send + Sync {
    /// Says who hears of commits. Called once, before the first append.
    fn attach(&self, sink: Arc<dyn CommitSink>);

    /// Commits what is queued and closes in order; blocks. Whatever is asked afterwards fails.
    fn close(&self);

    /// A fresh row number. Never blocks.
    fn next_row(&self) -> Row;

    /// Queues an addition. Never blocks; the sink hears of the outcome. Additions of one shard
    /// are committed in the order in which they were queued.
    fn append(&self, append: Append);

    /// Queues a state to rebuild from, in place of an older one. Never blocks and promises nothing:
    /// the facts can do without.
    fn store_snapshot(&self, kept: Snapshot);

    /// Whether writes are expected to succeed.
    fn is_writable(&self) -> bool;

    /// Queues the change of timers alone (a fired timer that nobody needs any more).
    fn change_timers(&self, changes: Vec<TimerChange>);
}

/// The read side.
pub trait Executions: Send + Sync {
    /// The whole execution, or nothing.
    fn load<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>>;

    /// The row alone.
    fn describe<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<Projection>>;

    /// Facts whose numbers are above `after`, oldest first, at most `limit` that give events:
    /// facts without an event do not count, so that a page always gets further. The next page
    /// follows the last event given, `next_seq() - 1` of the last fact.
    fn facts<'a>(
        &'a self,
        id: &'a ExecutionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<Recorded>>;

    /// Facts from a place on, about `bytes` of them as they are stored: one that gives an event at
    /// least, where there is one, so that a reader always gets further. Costs as much as it gives,
    /// however large the execution is, where the place is one that a portion before it named.
    fn portion<'a>(&'a self, id: &'a ExecutionId, from: Place, bytes: usize) -> Read<'a, Portion>;

    /// Newest first, at most `limit`, and where the next page begins. A list of ends may end a
    /// page early, so that its cost is bounded.
    fn list<'a>(
        &'a self,
        filter: &'a ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Read<'a, (Vec<Projection>, Option<Cursor>)>;

    /// How many executions are kept, by workflow and then status; what there is none of is left
    /// out. Its cost does not depend on how many there are.
    fn counts(&self) -> Read<'_, Vec<ExecutionCount>>;

    /// The same of one user, whose newest `limit` executions are looked at.
    fn counts_of_user<'a>(&'a self, user_id: &'a str, limit: usize) -> Read<'a, CountsOfUser>;

    /// Ids of executions with the status `running`, oldest first, after the given row.
    fn running<'a>(&'a self, after: Row, limit: usize) -> Read<'a, Vec<(Row, ExecutionId)>>;

    /// Timers due before `until`, soonest first.
    fn timers_due<'a>(&'a self, until: Timestamp, limit: usize) -> Read<'a, Vec<Timer>>;

    /// All timers of an execution, in no order.
    fn timers_of<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Vec<Timer>>;

    /// An idempotency record that has not expired.
    fn idempotency<'a>(
        &'a self,
        scope: &'a str,
        now: Timestamp,
    ) -> Read<'a, Option<IdempotencyRecord>>;
}

/// Definitions by hash, so that an execution goes on with the one it started with.
pub trait Definitions: Send + Sync {
    fn put_definition<'a>(&'a self, hash: &'a str, definition: &'a Value) -> Read<'a, ()>;
    fn definition<'a>(&'a self, hash: &'a str) -> Read<'a, Option<Value>>;
}

/// All ports of one store.
pub trait Store:
    Journal + Executions + Definitions + Generations + Conversations + Traces + Logs + Retention
{
}

impl<T> Store for T where
    T: Journal + Executions + Definitions + Generations + Conversations + Traces + Logs + Retention
{
}
