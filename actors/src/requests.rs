//! What callers ask of the [`Runtime`](crate::Runtime), and what they hear back.

use std::sync::{Arc, OnceLock};

use actix::{Message, Recipient};
use serde_json::{Map, Value};

use crate::agent::event::{GenerationEvent, GenerationProgress};
use crate::domain::fact::{Others, Recorded, Suspension};
use crate::domain::ids::{ExecutionId, StepPath};
pub use crate::domain::principal::Principal;
use crate::domain::state::Outcome;
pub use crate::domain::step_state::{StepResume, StepState, StepStatus};
use crate::domain::time::Timestamp;
pub use crate::domain::trace::{TraceOrigin, TraceParent};
use crate::domain::usage::Usage;
use crate::observe::cut::Cut;
pub use crate::ports::store::Failure;
use crate::ports::store::{AppendError, Header, ReadError, Status};
use crate::visibility::Visibility;

/// Names an execution the way routes do: an execution of another workflow is not found, nor is
/// one that the caller does not see.
#[derive(Debug, Clone)]
pub struct Target {
    pub workflow_id: String,
    pub execution_id: ExecutionId,
    pub visibility: Visibility,
}

/// A caller's `Idempotency-Key`.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// Route, execution, user and key, joined so that no two callers meet.
    pub scope: Arc<str>,
    /// Fingerprint of the body.
    pub body_hash: Arc<str>,
}

/// Asks for a new execution.
#[derive(Debug)]
pub struct StartExecution {
    pub workflow_id: String,
    /// The caller's choice; made here when there is none.
    pub execution_id: Option<ExecutionId>,
    pub input: Value,
    pub user_id: Option<String>,
    pub conversation_id: Option<String>,
    /// The caller's context object, `user` included when a token named one.
    pub context: Map<String, Value>,
    pub idempotency: Option<IdempotencyKey>,
    pub trace: TraceOrigin,
}

/// Asks a suspended execution to go on.
#[derive(Debug, Default)]
pub struct ResumeExecution {
    /// A step that waits, by its id or its path; needed where several wait.
    pub step_id: Option<String>,
    /// The suspension that it answers: refused once that one no longer waits.
    pub suspension_id: Option<String>,
    pub data: Value,
    pub by: Option<Principal>,
    pub idempotency: Option<IdempotencyKey>,
}

/// How an execution left `running`: the answer of execute, resume and replay.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionOutcome {
    pub execution_id: ExecutionId,
    pub trace_id: Arc<str>,
    pub started_at: Timestamp,
    pub halted: Halted,
}

/// Why an execution no longer runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Halted {
    Suspended {
        suspension: Arc<Suspension>,
        /// What it waits for beside that.
        others: Option<Arc<Others>>,
    },
    Ended {
        at: Timestamp,
        outcome: Outcome,
    },
}

impl ExecutionOutcome {
    /// Returns the status that the execution has now.
    pub fn status(&self) -> Status {
        match &self.halted {
            Halted::Suspended { .. } => Status::Suspended,
            Halted::Ended { outcome: Outcome::Completed { .. }, .. } => Status::Completed,
            Halted::Ended { outcome: Outcome::Failed { .. }, .. } => Status::Error,
            Halted::Ended { outcome: Outcome::Cancelled { .. }, .. } => Status::Cancelled,
        }
    }

    /// Returns the suspension that is shown, while suspended.
    pub fn suspension(&self) -> Option<&Suspension> {
        match &self.halted {
            Halted::Suspended { suspension, .. } => Some(suspension),
            Halted::Ended { .. } => None,
        }
    }

    /// Returns how it ended, once it has.
    pub fn end(&self) -> Option<&Outcome> {
        match &self.halted {
            Halted::Ended { outcome, .. } => Some(outcome),
            Halted::Suspended { .. } => None,
        }
    }

    /// Returns the result of a completed execution.
    pub fn result(&self) -> Option<&Value> {
        self.end()?.result().map(|result| &**result)
    }

    /// Returns the failure of an execution that ended with an error.
    pub fn failure(&self) -> Option<Failure> {
        Failure::of(self.end()?)
    }
}

/// The answer to an external suspend.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspended {
    pub suspension_id: Arc<str>,
    pub execution_id: ExecutionId,
    pub trace_id: Arc<str>,
    pub reason: Arc<str>,
    pub suspended_at: Timestamp,
    pub by: Option<Arc<Principal>>,
}

/// The answer to a cancel.
#[derive(Debug, Clone, PartialEq)]
pub struct Cancelled {
    pub execution_id: ExecutionId,
    pub trace_id: Arc<str>,
    pub reason: Arc<str>,
    pub cancelled_at: Timestamp,
    pub by: Option<Arc<Principal>>,
}

/// Everything that callers may know of an execution.
#[derive(Debug, Clone)]
pub struct ExecutionState {
    pub header: Arc<Header>,
    pub status: Status,
    pub input: Arc<Value>,
    pub context: Arc<Value>,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub result: Option<Arc<Value>>,
    pub error: Option<Failure>,
    /// The one shown, while suspended.
    pub suspension: Option<Arc<Suspension>>,
    /// All of them.
    pub suspensions: Vec<Suspension>,
    pub steps: Vec<StepState>,
    /// What the agent steps have used up, once one has.
    pub usage: Option<Usage>,
    pub last_seq: u64,
    /// In the middle of which execution it began, with which step, and who asked for it.
    pub replayed_from: Option<Lineage>,
    /// Who cancelled it.
    pub cancelled_by: Option<Arc<Principal>>,
}

/// Where an execution that is a replay began.
#[derive(Debug, Clone, PartialEq)]
pub struct Lineage {
    pub execution_id: ExecutionId,
    pub step_id: Arc<str>,
    pub by: Option<Arc<Principal>>,
}

/// Returns the caller's context with the user and the conversation in it.
pub(crate) fn operation_context(
    mut context: Map<String, Value>,
    user_id: Option<&str>,
    conversation_id: Option<&str>,
) -> Map<String, Value> {
    if let Some(user_id) = user_id {
        context.insert("userId".to_owned(), Value::from(user_id));
    }
    if let Some(conversation_id) = conversation_id {
        context.insert("conversationId".to_owned(), Value::from(conversation_id));
    }
    context
}

/// Facts that became durable together, as subscribers get them.
#[derive(Debug)]
pub struct EventBatch {
    pub execution_id: ExecutionId,
    pub facts: Arc<[Recorded]>,
    /// The wire form, made by the first subscriber that needs it and shared with the others.
    pub rendered: OnceLock<Arc<[u8]>>,
}

/// Tells a subscriber of an execution what was recorded.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct EventsRecorded(pub Arc<EventBatch>);

/// What a step said of its progress.
#[derive(Debug, Clone)]
pub enum Said {
    /// Its agent, while it works.
    Agent(GenerationProgress),
    /// Its function, in its own words.
    Function(Arc<Value>),
}

/// One thing that a step said.
#[derive(Debug, Clone, Copy)]
pub enum ProgressEvent<'a> {
    Agent(&'a GenerationEvent),
    Function(&'a Value),
}

/// What a step has said since subscribers were last told: of the moment, in no record.
#[derive(Debug)]
pub struct ProgressBatch {
    pub execution_id: ExecutionId,
    /// The step.
    pub path: StepPath,
    pub at: Timestamp,
    /// In order, never empty.
    pub said: Vec<Said>,
    /// The wire form, made by the first subscriber that needs it and shared with the others.
    pub rendered: OnceLock<Arc<[u8]>>,
}

impl ProgressBatch {
    /// What was said, one by one.
    pub fn events(&self) -> impl Iterator<Item = ProgressEvent<'_>> {
        self.said.iter().flat_map(|said| {
            let (agent, own) = match said {
                Said::Agent(progress) => (Some(progress.0.iter()), None),
                Said::Function(event) => (None, Some(ProgressEvent::Function(event))),
            };
            agent.into_iter().flatten().map(ProgressEvent::Agent).chain(own)
        })
    }
}

/// Tells a subscriber of an execution what the agent of a step says: after the event that the
/// step has begun and before the one of its end. One without room misses it.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct StepProgressed(pub Arc<ProgressBatch>);

/// A reader of one execution's events: an address with a bounded mailbox of its own.
#[derive(Clone)]
pub struct Subscriber {
    pub events: Recipient<EventsRecorded>,
    /// The same address, for a reader that cares for progress.
    pub progress: Option<Recipient<StepProgressed>>,
    /// Ends the connection from outside: called when the reader takes nothing any more.
    pub cut: Cut,
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Subscriber")
    }
}

/// Why an execution was not started.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StartError {
    #[error("workflow {0} not found")]
    UnknownWorkflow(String),
    #[error("input validation failed: {0}")]
    InvalidInput(String),
    #[error("execution {0} already exists")]
    Exists(ExecutionId),
    #[error("idempotency key was used with another body")]
    KeyReused,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why nothing can be done for a caller just now.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unavailable {
    #[error("the server is shutting down")]
    Draining { execution: Option<ExecutionId> },
    #[error("the server is busy")]
    Busy { execution: Option<ExecutionId> },
    /// The executions in memory hold as much as they may.
    #[error("the executions in memory hold all that limits.executions_memory_max leaves them")]
    NoMemory,
    /// With the execution, where it is on record: asking for the same again would make another.
    #[error("{reason}")]
    Store { reason: Arc<str>, execution: Option<ExecutionId> },
    /// What is stored of the one thing that is named makes no sense. Why is in the log.
    #[error("the record of {0} makes no sense")]
    Corrupt(Arc<str>),
    /// A defect: the actor died on this command.
    #[error("the execution's actor stopped unexpectedly")]
    ActorLost,
}

impl Unavailable {
    /// The store takes or gives nothing.
    pub fn from_store(reason: Arc<str>) -> Self {
        Self::Store { reason, execution: None }
    }
}

impl From<AppendError> for Unavailable {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Unavailable(reason) => Self::from_store(reason),
            AppendError::Exists | AppendError::Stale | AppendError::KeyTaken => {
                Self::from_store(Arc::from(error.to_string()))
            }
        }
    }
}

impl From<ReadError> for Unavailable {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable(reason) => Self::from_store(reason),
            ReadError::Corrupt(record) => Self::Corrupt(record),
        }
    }
}

/// Why an execution was not suspended or cancelled.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ControlError {
    #[error("execution not found")]
    NotFound,
    /// With the status that rules the change out.
    #[error("execution is already {0:?}")]
    Already(Status),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why an execution was not resumed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ResumeError {
    #[error("execution not found")]
    NotFound,
    #[error("execution is not suspended")]
    NotSuspended,
    #[error("step {0} not found")]
    UnknownStep(String),
    #[error("step {0} is not suspended")]
    StepNotSuspended(String),
    #[error("step {step} is suspended more than once: {paths}")]
    Ambiguous { step: String, paths: String },
    #[error("several steps are waiting: {paths}")]
    SeveralWait { paths: String },
    #[error("suspension {id} no longer waits")]
    SuspensionPassed { id: String, waiting: Vec<Suspension> },
    #[error("resume data validation failed: {0}")]
    InvalidData(String),
    #[error("idempotency key was used with another body")]
    KeyReused,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why an execution was not read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DescribeError {
    #[error("execution not found")]
    NotFound,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Where a new reader of an execution begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    /// Number of the last durable event: everything above it reaches the subscriber, everything
    /// up to it is in [`crate::Runtime::portion`].
    pub durable_seq: u64,
    /// The execution has ended and takes no subscriber: the facts are all there is.
    pub ended: bool,
}
