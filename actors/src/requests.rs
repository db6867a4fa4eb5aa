//! Requests to the [`Runtime`](crate::Runtime), and its answers.

mod inbox;
pub(crate) mod unavailable;

use std::sync::{Arc, OnceLock};

use actix::{Message, Recipient};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::event::{GenerationEvent, GenerationProgress};
pub use crate::domain::assignment::{ASSIGNEES_MAX, Answerer, Assignee};
use crate::domain::fact::{Others, Recorded, Suspension};
use crate::domain::ids::{ExecutionId, StepPath};
pub use crate::domain::principal::Principal;
use crate::domain::state::Outcome;
pub use crate::domain::step_state::{StepResume, StepState, StepStatus};
use crate::domain::time::Timestamp;
pub use crate::domain::trace::{TraceOrigin, TraceParent};
use crate::domain::usage::Usage;
use crate::observe::disconnect::Disconnect;
pub use crate::ports::store::Failure;
use crate::ports::store::{Header, Status};
use crate::visibility::Visibility;

pub use self::inbox::{
    AnswerAsk, Answered, ApproveCall, AskAccess, AskDetail, AskError, AskUpdate, CLAIM_DEFAULT,
    CLAIM_MAX, ChatReply, ContinueChat, Permissions, Reply,
};
pub use self::unavailable::Unavailable;
pub(crate) use self::unavailable::is_refused_as;

/// Names an execution the way routes do. An execution of another workflow is not found, nor is
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
    /// Route, execution, user and key, joined without ambiguity.
    pub scope: Arc<str>,
    /// Fingerprint of the body.
    pub body_hash: Arc<str>,
}

/// Request for a new execution.
#[derive(Debug)]
pub struct StartExecution {
    pub workflow_id: String,
    /// Id chosen by the caller; `None`: the runtime makes one.
    pub execution_id: Option<ExecutionId>,
    pub input: Value,
    pub user_id: Option<String>,
    pub conversation_id: Option<String>,
    /// The caller's context object, with `user` if a token named one.
    pub context: Map<String, Value>,
    pub idempotency: Option<IdempotencyKey>,
    pub trace: TraceOrigin,
}

impl StartExecution {
    /// Creates a request without a caller: the runtime makes an id. The other fields can be set.
    pub fn new(workflow_id: impl Into<String>, input: impl Into<Value>) -> Self {
        Self {
            workflow_id: workflow_id.into(),
            execution_id: None,
            input: input.into(),
            user_id: None,
            conversation_id: None,
            context: Map::new(),
            idempotency: None,
            trace: TraceOrigin::New,
        }
    }
}

/// Request to resume a suspended execution.
#[derive(Debug, Default)]
pub struct ResumeExecution {
    /// Id or path of the suspended step; required when several are suspended.
    pub step_id: Option<String>,
    /// Suspension that this answers; the resume is refused when it is no longer waiting.
    pub suspension_id: Option<String>,
    pub data: Value,
    pub by: Option<Principal>,
    /// Caller that has to be among those who are asked; `None` resumes in any case.
    pub answerer: Option<Answerer>,
    pub idempotency: Option<IdempotencyKey>,
}

/// State in which an execution left `running`: the answer to execute, resume and replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionOutcome {
    pub execution_id: ExecutionId,
    pub trace_id: Arc<str>,
    pub started_at: Timestamp,
    pub halted: Halted,
}

/// Reason why an execution no longer runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Halted {
    Suspended {
        suspension: Arc<Suspension>,
        /// Its other suspensions.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Suspended {
    pub suspension_id: Arc<str>,
    pub execution_id: ExecutionId,
    pub trace_id: Arc<str>,
    pub reason: Arc<str>,
    pub suspended_at: Timestamp,
    pub by: Option<Arc<Principal>>,
}

/// The answer to a cancel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cancelled {
    pub execution_id: ExecutionId,
    pub trace_id: Arc<str>,
    pub reason: Arc<str>,
    pub cancelled_at: Timestamp,
    pub by: Option<Arc<Principal>>,
    /// True if it compensates before it ends.
    #[serde(default)]
    pub compensates: bool,
}

/// State of an execution, as callers may see it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExecutionState {
    pub header: Arc<Header>,
    pub status: Status,
    pub input: Arc<Value>,
    pub context: Arc<Value>,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub result: Option<Arc<Value>>,
    pub error: Option<Failure>,
    /// Reason of the cancellation.
    pub cancel_reason: Option<Arc<str>>,
    /// Suspension that is shown, while suspended.
    pub suspension: Option<Arc<Suspension>>,
    /// All suspensions.
    pub suspensions: Vec<Suspension>,
    pub steps: Vec<StepState>,
    /// Tokens used by agent steps, once one has run.
    pub usage: Option<Usage>,
    pub last_seq: u64,
    /// Compensation of its completed steps, once it has begun.
    pub compensation: Option<CompensationState>,
    /// The completed execution whose steps it compensates, if it is the reversal of one.
    pub reversal_of: Option<ExecutionId>,
    /// Origin of a replay.
    pub replayed_from: Option<Lineage>,
    /// Principal that cancelled it.
    pub cancelled_by: Option<Arc<Principal>>,
}

/// Compensation of an execution that fails or was cancelled.
#[derive(Debug, Clone, PartialEq)]
pub struct CompensationState {
    pub since: Timestamp,
    /// The error, or the reason of the cancellation; for a reversal, that of the execution above.
    pub reason: Arc<str>,
    /// Number of steps that are compensated.
    pub completed: usize,
    /// Number of steps whose compensation a person skipped.
    pub skipped: usize,
    /// Number of steps that are neither.
    pub remaining: usize,
}

/// Origin of a replay: the execution, the step it began with, and the principal that asked.
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

/// Removes what [`operation_context`] has added.
pub(crate) fn forget_operation(context: &mut Map<String, Value>) {
    context.remove("userId");
    context.remove("conversationId");
}

/// Facts that became durable together, as published to subscribers.
#[derive(Debug)]
pub struct EventBatch {
    pub execution_id: ExecutionId,
    pub facts: Arc<[Recorded]>,
    /// The wire form, made by the first subscriber that needs it and shared with the others.
    pub rendered: OnceLock<Arc<[u8]>>,
}

impl EventBatch {
    /// Returns a batch without its wire form.
    pub(crate) fn new(execution_id: ExecutionId, facts: Arc<[Recorded]>) -> Self {
        Self { execution_id, facts, rendered: OnceLock::new() }
    }
}

/// Publishes durable facts to a subscriber of an execution.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct EventsRecorded(pub Arc<EventBatch>);

/// Progress of a step: of its agent, or of its function.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum StepProgress {
    /// Events of its running agent.
    Agent(GenerationProgress),
    /// A value that its function sent.
    Function(Arc<Value>),
}

/// One progress event of a step.
#[derive(Debug, Clone, Copy)]
pub enum ProgressEvent<'a> {
    Agent(&'a GenerationEvent),
    Function(&'a Value),
}

/// Progress of a step since the last batch. It is not recorded.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProgressBatch {
    pub execution_id: ExecutionId,
    /// The step.
    pub path: StepPath,
    pub at: Timestamp,
    /// In order, never empty.
    pub progress: Vec<StepProgress>,
    /// The wire form, made by the first subscriber that needs it and shared with the others.
    #[serde(skip)]
    pub rendered: OnceLock<Arc<[u8]>>,
}

impl ProgressBatch {
    /// Returns the events one by one.
    pub fn events(&self) -> impl Iterator<Item = ProgressEvent<'_>> {
        self.progress.iter().flat_map(|progress| {
            let (agent, own) = match progress {
                StepProgress::Agent(progress) => (Some(progress.0.iter()), None),
                StepProgress::Function(event) => (None, Some(ProgressEvent::Function(event))),
            };
            agent.into_iter().flatten().map(ProgressEvent::Agent).chain(own)
        })
    }
}

/// Publishes the progress of a step to a subscriber, after the event that the step has started
/// and before the one that it has ended. A subscriber without room misses it.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct StepProgressed(pub Arc<ProgressBatch>);

/// A subscriber to the events of one execution: an address with its own bounded mailbox.
///
/// The execution keeps it until it has published its last event. If the execution's actor is lost
/// before (a panic, an append that was refused), the subscriber is dropped with it: it learns that
/// from [`Forgotten`](crate::observe::forgotten::Forgotten), subscribes again, and reads what it
/// has missed.
#[derive(Clone)]
pub struct Subscriber {
    pub events: Recipient<EventsRecorded>,
    /// The same address, if the subscriber wants progress.
    pub progress: Option<Recipient<StepProgressed>>,
    /// Closes the connection from outside, when the subscriber no longer reads.
    pub disconnect: Disconnect,
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Subscriber")
    }
}

/// Refusal of a start.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
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

/// Refusal of a suspend or a cancel.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum ControlError {
    #[error("execution not found")]
    NotFound,
    /// With the status that rules out the change.
    #[error("execution is already {0:?}")]
    Already(Status),
    /// It has failed or was cancelled, and compensates before it ends.
    #[error("execution compensates")]
    Compensating,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Refusal of a resume.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
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
    /// The step waits until the asks of its generation are answered.
    #[error("step {0} waits for answers to what its agent asks")]
    AsksOpen(String),
    #[error("others are asked")]
    NotAssigned,
    /// The program's own check refused it.
    #[error("the answer was refused: {0}")]
    Refused(String),
    #[error("resume data validation failed: {0}")]
    InvalidData(String),
    #[error("idempotency key was used with another body")]
    KeyReused,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Reason why an execution could not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum DescribeError {
    #[error("execution not found")]
    NotFound,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Position at which a new subscriber of an execution begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Number of the last durable event: later ones reach the subscriber, earlier ones are in
    /// [`crate::Runtime::portion`].
    pub durable_seq: u64,
    /// The execution has ended and accepts no subscriber; its facts are complete.
    pub ended: bool,
}
