//! Commands that a supervisor passes to the actor of an execution, each with its reply channel.

use std::sync::Arc;
use std::time::Duration;

use actix::Message;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot::Sender;

use crate::domain::fact::Start;
use crate::domain::failure::ErrorKind;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::{ChildReport, ReplayFrom, Resume};
use crate::domain::plan::Plan;
use crate::domain::principal::Principal;
use crate::ports::store::{Header, IdempotencyRecord, TimerKey};
use crate::replay::{Original, ReplayError};
use crate::requests::{
    AskAccess, Cancelled, ControlError, DescribeError, ExecutionOutcome, ExecutionState,
    ResumeError, StartError, Subscriber, Subscription, Suspended, Target, Unavailable,
};
use crate::shard::memory_budget::Claim;
use crate::visibility::Visibility;
use crate::wait_report::WaitReport;

pub(crate) type Answer<T, E> = Sender<Result<T, E>>;

/// A caller that waits for an answer.
pub(crate) trait Refuse {
    /// Answers that the command cannot be carried out now, with the reason.
    fn refuse(self, why: Unavailable);
}

impl<T, E: From<Unavailable>> Refuse for Answer<T, E> {
    fn refuse(self, why: Unavailable) {
        drop(self.send(Err(why.into())));
    }
}

/// Passes a command to the execution of this id; the supervisor loads the execution if needed.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Deliver {
    pub(crate) id: ExecutionId,
    pub(crate) command: ExecutionCommand,
}

/// Restricts a caller's command to the executions that the caller may find.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// Workflow that the route named.
    pub(crate) workflow: String,
    pub(crate) visibility: Visibility,
}

impl Subject {
    pub(crate) fn is(&self, header: &Header) -> bool {
        self.workflow == *header.workflow_id && self.visibility.allows(header.user_id.as_deref())
    }
}

impl From<&Target> for Subject {
    fn from(target: &Target) -> Self {
        Self { workflow: target.workflow_id.clone(), visibility: target.visibility.clone() }
    }
}

/// A request to an execution. One of a caller has a subject: for any other execution the answer
/// is "not found".
pub(crate) enum ExecutionCommand {
    Start(Box<StartCommand>),
    Suspend(ControlCommand<Suspended>),
    Resume(Box<ResumeCommand>),
    Cancel(ControlCommand<Cancelled>),
    Describe {
        subject: Subject,
        answer: Answer<Box<ExecutionState>, DescribeError>,
    },
    /// Reports what the execution waits for. Without a subject the runtime itself asks.
    Why {
        subject: Option<Subject>,
        answer: Answer<Box<WaitReport>, DescribeError>,
    },
    /// Returns what a new execution needs to begin with this step.
    Copy {
        subject: Subject,
        from: ReplayFrom,
        answer: Answer<Box<Original>, ReplayError>,
    },
    Subscribe {
        subject: Subject,
        subscriber: Subscriber,
        answer: Answer<Subscription, DescribeError>,
    },
    /// Answered with the first outcome after this event number.
    AwaitOutcome {
        subject: Option<Subject>,
        after_seq: u64,
        answer: Answer<ExecutionOutcome, DescribeError>,
    },
    /// A timer fell due.
    Timer(TimerKey),
    /// A child reports its status to its parent.
    ChildReported {
        path: StepPath,
        report: ChildReport,
    },
    /// A parent asks for the status.
    Report {
        answer: Answer<ChildReport, DescribeError>,
    },
    /// A resume that is answered when it is recorded: a caller's answer to an ask or, without a
    /// subject, what a parent passes on for its andWorkflow step. The key, if any, goes into the
    /// commit of the decision. The conditions of an answer, checked by the sender, are checked again
    /// if the program's own check has taken its time.
    PassResume {
        subject: Option<Subject>,
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
        access: AskAccess,
        answer: Answer<u64, ResumeError>,
    },
    /// Continues what was running when the process ended.
    Continue,
    /// Ends the execution with an error because it cannot continue.
    Abort {
        error: Arc<str>,
        kind: ErrorKind,
    },
    /// Drops bodies, and refuses callers with this reason, because the process ends or another one
    /// is to serve the execution; answered when all facts are durable.
    Stop {
        why: Unavailable,
        answer: Sender<()>,
    },
}

pub(crate) struct StartCommand {
    pub(crate) plan: Arc<Plan>,
    pub(crate) start: Box<Start>,
    /// True if the id was not made here, so the store may already have it.
    pub(crate) chosen_id: bool,
    pub(crate) idempotency: Option<IdempotencyRecord>,
    pub(crate) subscriber: Option<Subscriber>,
    /// Memory that it starts with.
    pub(crate) claim: Claim,
    pub(crate) answer: StartAnswer,
}

impl StartCommand {
    /// Returns the start of an execution by a step or a tool: no key, no subscriber.
    pub(crate) fn internal(
        plan: Arc<Plan>,
        start: Box<Start>,
        claim: Claim,
        answer: StartAnswer,
    ) -> Self {
        let (chosen_id, idempotency, subscriber) = (true, None, None);
        Self { plan, start, chosen_id, idempotency, subscriber, claim, answer }
    }
}

/// A suspend or a cancel; `T` is its answer.
pub(crate) struct ControlCommand<T> {
    pub(crate) subject: Subject,
    pub(crate) reason: Option<String>,
    pub(crate) by: Option<Arc<Principal>>,
    pub(crate) answer: Answer<T, ControlError>,
}

/// Recipient of the answer to a start, and the moment of that answer.
pub(crate) enum StartAnswer {
    /// Answered when the execution leaves `running`.
    OnSettled(Sender<Result<ExecutionOutcome, StartRefusal>>),
    /// Answered when the start is durable.
    AtStart(Sender<Result<ExecutionId, StartRefusal>>),
    /// A parent, answered when the start is durable, also if it already was.
    Parent(Answer<ChildReport, StartError>),
}

/// Refusal of a start or a resume; a lost race for its idempotency key is one, too.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum KeyedRefusal<E> {
    Error(E),
    KeyTaken,
}

pub(crate) type StartRefusal = KeyedRefusal<StartError>;
pub(crate) type ResumeRefusal = KeyedRefusal<ResumeError>;

impl<E> From<E> for KeyedRefusal<E> {
    fn from(error: E) -> Self {
        Self::Error(error)
    }
}

impl From<Unavailable> for StartRefusal {
    fn from(error: Unavailable) -> Self {
        Self::Error(error.into())
    }
}

impl From<StartRefusal> for StartError {
    fn from(refusal: StartRefusal) -> Self {
        match refusal {
            StartRefusal::Error(error) => error,
            StartRefusal::KeyTaken => Self::KeyReused,
        }
    }
}

impl From<Unavailable> for ResumeRefusal {
    fn from(error: Unavailable) -> Self {
        Self::Error(error.into())
    }
}

pub(crate) struct ResumeCommand {
    pub(crate) subject: Subject,
    pub(crate) resume: Resume,
    pub(crate) idempotency: Option<IdempotencyRecord>,
    pub(crate) answer: Sender<Result<ExecutionOutcome, ResumeRefusal>>,
}

impl StartAnswer {
    async fn abandoned(&mut self) {
        match self {
            Self::OnSettled(answer) => answer.closed().await,
            Self::AtStart(answer) => answer.closed().await,
            Self::Parent(answer) => answer.closed().await,
        }
    }

    pub(crate) fn refuse(self, refusal: StartRefusal) {
        match self {
            Self::OnSettled(answer) => drop(answer.send(Err(refusal))),
            Self::AtStart(answer) => drop(answer.send(Err(refusal))),
            Self::Parent(answer) => drop(answer.send(Err(refusal.into()))),
        }
    }
}

impl ExecutionCommand {
    /// Returns a resume that answers no ask, and so has no conditions besides those of the step.
    pub(crate) fn pass_resume(
        subject: Option<Subject>,
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
        answer: Answer<u64, ResumeError>,
    ) -> Self {
        Self::PassResume { subject, resume, idempotency, access: AskAccess::default(), answer }
    }

    /// Fails an execution during whose evaluation processes have died.
    pub(crate) fn set_aside(error: Arc<str>) -> Self {
        Self::Abort { error, kind: ErrorKind::Interrupted }
    }

    /// Returns true if the command is sent to the execution even when its mailbox is full: it is
    /// not repeated soon, and there are at most as many as steps that wait for one.
    pub(crate) fn must_arrive(&self) -> bool {
        matches!(self, Self::Timer(_) | Self::ChildReported { .. })
    }

    /// Returns true if no caller would repeat the command if it were lost.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self, Self::Continue | Self::Abort { .. })
    }

    /// Returns true if the command can wait until there is memory to load its execution.
    pub(crate) fn is_patient(&self) -> bool {
        self.rules().1 == Load::WhenThereIsRoom
    }

    /// Returns true if the command would keep an execution in memory for a caller.
    pub(crate) fn needs_room(&self) -> bool {
        self.rules().1 == Load::IfThereIsRoom
    }

    /// Returns the time for which another process is waited for. A report on what an execution waits
    /// for says before long that it is that process.
    pub(crate) fn answered_within(&self, lease: Duration) -> Duration {
        if matches!(self, Self::Why { .. }) { lease / 2 } else { Duration::MAX }
    }

    /// Returns true if the command has values of a caller, which can be large.
    pub(crate) fn has_values(&self) -> bool {
        matches!(self, Self::Start(_) | Self::Resume(_) | Self::PassResume { .. })
    }

    /// Returns true if the command may find an execution with this header.
    pub(crate) fn is_for(&self, header: &Header) -> bool {
        self.rules().0.is_none_or(|subject| subject.is(header))
    }

    /// Returns the executions that it is for, and when to load one for it.
    fn rules(&self) -> (Option<&Subject>, Load) {
        match self {
            Self::Suspend(ControlCommand { subject, .. }) | Self::Subscribe { subject, .. } => {
                (Some(subject), Load::IfThereIsRoom)
            }
            Self::Resume(command) => (Some(&command.subject), Load::IfThereIsRoom),
            Self::AwaitOutcome { subject: Some(subject), .. }
            | Self::PassResume { subject: Some(subject), .. } => {
                (Some(subject), Load::IfThereIsRoom)
            }
            Self::Cancel(ControlCommand { subject, .. })
            | Self::Describe { subject, .. }
            | Self::Copy { subject, .. } => (Some(subject), Load::Always),
            Self::Why { subject, .. } => (subject.as_ref(), Load::Always),
            Self::AwaitOutcome { subject: None, .. }
            | Self::Start(_)
            | Self::Report { .. }
            | Self::PassResume { subject: None, .. }
            | Self::Abort { .. }
            | Self::Stop { .. } => (None, Load::Always),
            Self::Continue | Self::Timer(_) | Self::ChildReported { .. } => {
                (None, Load::WhenThereIsRoom)
            }
        }
    }

    /// Answers that the command cannot be carried out now, with the reason.
    pub(crate) fn refuse(self, why: Unavailable) {
        self.reply(why.into());
    }

    /// Answers that there is no such execution (for a start: see the supervisor).
    pub(crate) fn not_found(self) {
        self.reply(DescribeError::NotFound);
    }

    /// Resolves when nothing waits for the answer, as when a caller has disconnected.
    pub(crate) async fn abandoned(&mut self) {
        match self {
            Self::Start(command) => command.answer.abandoned().await,
            Self::Suspend(command) => command.answer.closed().await,
            Self::Resume(command) => command.answer.closed().await,
            Self::Cancel(command) => command.answer.closed().await,
            Self::Describe { answer, .. } => answer.closed().await,
            Self::Why { answer, .. } => answer.closed().await,
            Self::Copy { answer, .. } => answer.closed().await,
            Self::Subscribe { answer, .. } => answer.closed().await,
            Self::AwaitOutcome { answer, .. } => answer.closed().await,
            Self::Report { answer } => answer.closed().await,
            Self::PassResume { answer, .. } => answer.closed().await,
            Self::Stop { answer, .. } => answer.closed().await,
            Self::Timer(_) | Self::ChildReported { .. } | Self::Continue | Self::Abort { .. } => {
                std::future::pending().await
            }
        }
    }

    fn reply(self, error: DescribeError) {
        match self {
            Self::Start(command) => command.answer.refuse(error.into()),
            Self::Suspend(command) => drop(command.answer.send(Err(error.into()))),
            Self::Resume(command) => drop(command.answer.send(Err(error.into()))),
            Self::Cancel(command) => drop(command.answer.send(Err(error.into()))),
            Self::Describe { answer, .. } => drop(answer.send(Err(error))),
            Self::Why { answer, .. } => drop(answer.send(Err(error))),
            Self::Copy { answer, .. } => drop(answer.send(Err(error.into()))),
            Self::Subscribe { answer, .. } => drop(answer.send(Err(error))),
            Self::AwaitOutcome { answer, .. } => drop(answer.send(Err(error))),
            Self::Report { answer } => drop(answer.send(Err(error))),
            Self::PassResume { answer, .. } => drop(answer.send(Err(error.into()))),
            Self::Stop { answer, .. } => drop(answer.send(())),
            // Repeated from the store: a timer, or the parent's query, brings it back.
            Self::Timer(_) | Self::ChildReported { .. } | Self::Continue | Self::Abort { .. } => {}
        }
    }
}

/// Conditions for loading an execution that is not in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    /// A caller would keep it in memory: refused while memory is used up.
    IfThereIsRoom,
    /// It ends the execution, only reads it, or comes from an execution in memory.
    Always,
    /// No caller waits, and it is repeated until it has an effect.
    WhenThereIsRoom,
}

macro_rules! from_describe_error {
    ($($refusal:ty),*) => {$(
        impl From<DescribeError> for $refusal {
            fn from(error: DescribeError) -> Self {
                match error {
                    DescribeError::NotFound => Self::NotFound,
                    DescribeError::Unavailable(why) => why.into(),
                }
            }
        }
    )*};
}
from_describe_error!(ControlError, ReplayError, ResumeError);

impl From<DescribeError> for ResumeRefusal {
    fn from(error: DescribeError) -> Self {
        Self::Error(error.into())
    }
}

impl From<DescribeError> for StartRefusal {
    /// Not found means a lost actor here, since a start creates the execution.
    fn from(error: DescribeError) -> Self {
        match error {
            DescribeError::NotFound => Unavailable::ActorLost.into(),
            DescribeError::Unavailable(why) => why.into(),
        }
    }
}
