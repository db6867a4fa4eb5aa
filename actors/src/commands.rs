//! Commands that a supervisor passes to the actor of an execution, each with its reply channel.

use std::sync::Arc;

use actix::Message;
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
    Cancelled, ControlError, DescribeError, ExecutionOutcome, ExecutionState, ResumeError,
    StartError, Subscriber, Subscription, Suspended, Target, Unavailable,
};
use crate::shard::memory_budget::Claim;
use crate::visibility::Visibility;
use crate::wait_report::WaitReport;

pub(crate) type Answer<T, E> = Sender<Result<T, E>>;

/// Passes a command to the execution of this id, which the supervisor loads if need be.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Deliver {
    pub(crate) id: ExecutionId,
    pub(crate) command: ExecutionCommand,
}

/// Selects the executions that a caller's command may find.
pub(crate) struct Subject {
    /// The one that the route named.
    pub(crate) workflow: String,
    pub(crate) visibility: Visibility,
}

impl Subject {
    pub(crate) fn is(&self, header: &Header) -> bool {
        self.workflow == *header.workflow_id && self.visibility.reaches(header.user_id.as_deref())
    }
}

impl From<&Target> for Subject {
    fn from(target: &Target) -> Self {
        Self { workflow: target.workflow_id.clone(), visibility: target.visibility.clone() }
    }
}

/// Everything that can be asked of an execution. A command of a caller has a subject: on another
/// execution it finds nothing.
pub(crate) enum ExecutionCommand {
    Start(Box<StartCommand>),
    Suspend {
        subject: Subject,
        reason: Option<String>,
        by: Option<Arc<Principal>>,
        answer: Answer<Suspended, ControlError>,
    },
    Resume(Box<ResumeCommand>),
    Cancel {
        subject: Subject,
        reason: Option<String>,
        by: Option<Arc<Principal>>,
        answer: Answer<Cancelled, ControlError>,
    },
    Describe {
        subject: Subject,
        answer: Answer<Box<ExecutionState>, DescribeError>,
    },
    /// What does it wait for? Without a subject: whoever asks.
    Why {
        subject: Option<Subject>,
        answer: Answer<Box<WaitReport>, DescribeError>,
    },
    /// Give what a new execution needs to begin with this step.
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
    /// Answered with the first outcome after this number.
    AwaitOutcome {
        subject: Option<Subject>,
        after_seq: u64,
        answer: Answer<ExecutionOutcome, DescribeError>,
    },
    /// Time has come.
    Timer(TimerKey),
    /// From a child: where it stands.
    ChildReported {
        path: StepPath,
        report: ChildReport,
    },
    /// From a parent: say where you stand.
    Report {
        answer: Answer<ChildReport, DescribeError>,
    },
    /// From a parent: a resume of its andWorkflow step.
    /// The key, if any, goes into the commit of the decision.
    PassResume {
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
        answer: Answer<u64, ResumeError>,
    },
    /// Goes on with what was running when the process ended.
    Continue,
    /// Ends the execution with an error: it cannot go on.
    Abort {
        error: Arc<str>,
        kind: ErrorKind,
    },
    /// The process ends: lets go of bodies and callers; answered when all facts are durable.
    Stop {
        answer: Sender<()>,
    },
}

pub(crate) struct StartCommand {
    pub(crate) plan: Arc<Plan>,
    pub(crate) start: Box<Start>,
    /// Whether somebody else chose the id, so that the store may know it.
    pub(crate) chosen_id: bool,
    pub(crate) idempotency: Option<IdempotencyRecord>,
    pub(crate) subscriber: Option<Subscriber>,
    /// The memory that it begins with.
    pub(crate) claim: Claim,
    pub(crate) answer: StartAnswer,
}

/// Who hears of a start, and when.
pub(crate) enum StartAnswer {
    /// When the execution leaves `running`.
    OnSettled(Sender<Result<ExecutionOutcome, StartRefusal>>),
    /// When the start is durable.
    AtStart(Sender<Result<ExecutionId, StartRefusal>>),
    /// A parent: when the start is durable, whether now or earlier.
    Parent(Answer<ChildReport, StartError>),
}

/// Why a start came to nothing, the race for an idempotency key included.
#[derive(Debug)]
pub(crate) enum StartRefusal {
    Error(StartError),
    KeyTaken,
}

impl From<StartError> for StartRefusal {
    fn from(error: StartError) -> Self {
        Self::Error(error)
    }
}

impl From<Unavailable> for StartRefusal {
    fn from(error: Unavailable) -> Self {
        Self::Error(StartError::Unavailable(error))
    }
}

pub(crate) struct ResumeCommand {
    pub(crate) subject: Subject,
    pub(crate) resume: Resume,
    pub(crate) idempotency: Option<IdempotencyRecord>,
    pub(crate) answer: Sender<Result<ExecutionOutcome, ResumeRefusal>>,
}

/// Why a resume came to nothing, the race for an idempotency key included.
#[derive(Debug)]
pub(crate) enum ResumeRefusal {
    Error(ResumeError),
    KeyTaken,
}

impl From<ResumeError> for ResumeRefusal {
    fn from(error: ResumeError) -> Self {
        Self::Error(error)
    }
}

impl From<Unavailable> for ResumeRefusal {
    fn from(error: Unavailable) -> Self {
        Self::Error(ResumeError::Unavailable(error))
    }
}

impl StartAnswer {
    pub(crate) fn refuse(self, refusal: StartRefusal) {
        match self {
            Self::OnSettled(answer) => drop(answer.send(Err(refusal))),
            Self::AtStart(answer) => drop(answer.send(Err(refusal))),
            Self::Parent(answer) => drop(answer.send(Err(match refusal {
                StartRefusal::Error(error) => error,
                StartRefusal::KeyTaken => StartError::KeyReused,
            }))),
        }
    }
}

impl ExecutionCommand {
    /// Ends an execution that processes ended with.
    pub(crate) fn set_aside(error: Arc<str>) -> Self {
        Self::Abort { error, kind: ErrorKind::Interrupted }
    }

    /// Whether it goes to the execution although its mailbox is full: nothing repeats it soon, and
    /// there are no more of it than steps that wait for it.
    pub(crate) fn must_arrive(&self) -> bool {
        matches!(self, Self::Timer(_) | Self::ChildReported { .. })
    }

    /// Whether no caller would ask again if the command were lost.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self, Self::Continue | Self::Abort { .. })
    }

    /// Whether it can wait until there is memory to bring its execution back.
    pub(crate) fn is_patient(&self) -> bool {
        self.rules().1 == Load::WhenThereIsRoom
    }

    /// Whether it keeps an execution in memory for a caller.
    pub(crate) fn needs_room(&self) -> bool {
        self.rules().1 == Load::IfThereIsRoom
    }

    /// Whether an execution is one that the command may be about.
    pub(crate) fn is_for(&self, header: &Header) -> bool {
        self.rules().0.is_none_or(|subject| subject.is(header))
    }

    /// Returns which execution it is for, and when that one is loaded for it.
    fn rules(&self) -> (Option<&Subject>, Load) {
        match self {
            Self::Suspend { subject, .. } | Self::Subscribe { subject, .. } => {
                (Some(subject), Load::IfThereIsRoom)
            }
            Self::Resume(command) => (Some(&command.subject), Load::IfThereIsRoom),
            Self::AwaitOutcome { subject: Some(subject), .. } => {
                (Some(subject), Load::IfThereIsRoom)
            }
            Self::Cancel { subject, .. }
            | Self::Describe { subject, .. }
            | Self::Copy { subject, .. } => (Some(subject), Load::Always),
            Self::Why { subject, .. } => (subject.as_ref(), Load::Always),
            Self::AwaitOutcome { subject: None, .. }
            | Self::Start(_)
            | Self::Report { .. }
            | Self::PassResume { .. }
            | Self::Abort { .. }
            | Self::Stop { .. } => (None, Load::Always),
            Self::Continue | Self::Timer(_) | Self::ChildReported { .. } => {
                (None, Load::WhenThereIsRoom)
            }
        }
    }

    /// Answers with the reason why nothing can be done now.
    pub(crate) fn refuse(self, why: Unavailable) {
        self.reply(why.into());
    }

    /// Answers that there is no such execution (for a start: see the supervisor).
    pub(crate) fn not_found(self) {
        self.reply(DescribeError::NotFound);
    }

    fn reply(self, error: DescribeError) {
        match self {
            Self::Start(command) => command.answer.refuse(error.into()),
            Self::Suspend { answer, .. } => drop(answer.send(Err(error.into()))),
            Self::Resume(command) => drop(command.answer.send(Err(error.into()))),
            Self::Cancel { answer, .. } => drop(answer.send(Err(error.into()))),
            Self::Describe { answer, .. } => drop(answer.send(Err(error))),
            Self::Why { answer, .. } => drop(answer.send(Err(error))),
            Self::Copy { answer, .. } => drop(answer.send(Err(error.into()))),
            Self::Subscribe { answer, .. } => drop(answer.send(Err(error))),
            Self::AwaitOutcome { answer, .. } => drop(answer.send(Err(error))),
            Self::Report { answer } => drop(answer.send(Err(error))),
            Self::PassResume { answer, .. } => drop(answer.send(Err(error.into()))),
            Self::Stop { answer } => drop(answer.send(())),
            // Durable elsewhere: a timer in the store brings it back.
            Self::Timer(_) | Self::ChildReported { .. } | Self::Continue | Self::Abort { .. } => {}
        }
    }
}

/// When an execution that is not in memory is loaded for a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    /// A caller would keep it in memory: while memory is used up the command is refused.
    IfThereIsRoom,
    /// It ends the execution, only reads it, or comes from one that is in memory itself.
    Always,
    /// No caller waits, and it is repeated until it has an effect.
    WhenThereIsRoom,
}

impl From<DescribeError> for ControlError {
    fn from(error: DescribeError) -> Self {
        match error {
            DescribeError::NotFound => Self::NotFound,
            DescribeError::Unavailable(why) => why.into(),
        }
    }
}

impl From<DescribeError> for ReplayError {
    fn from(error: DescribeError) -> Self {
        match error {
            DescribeError::NotFound => Self::NotFound,
            DescribeError::Unavailable(why) => why.into(),
        }
    }
}

impl From<DescribeError> for ResumeError {
    fn from(error: DescribeError) -> Self {
        match error {
            DescribeError::NotFound => Self::NotFound,
            DescribeError::Unavailable(why) => why.into(),
        }
    }
}

impl From<DescribeError> for ResumeRefusal {
    fn from(error: DescribeError) -> Self {
        Self::Error(error.into())
    }
}

impl From<DescribeError> for StartRefusal {
    /// A start makes the execution that is not there: one that finds none has lost its actor.
    fn from(error: DescribeError) -> Self {
        match error {
            DescribeError::NotFound => Unavailable::ActorLost.into(),
            DescribeError::Unavailable(why) => why.into(),
        }
    }
}
