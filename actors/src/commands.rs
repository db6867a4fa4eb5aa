//! What a supervisor passes to the actor of an execution, each with the way back.

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

/// Passes an order to the execution of this id, which the supervisor brings to life if need be.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Deliver {
    pub(crate) id: ExecutionId,
    pub(crate) order: Order,
}

/// What has to be true of an execution for a caller's order to find it.
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

/// One order. Those of callers say what has to be true of the execution for it to be theirs.
pub(crate) enum Order {
    Start(Box<StartOrder>),
    Suspend {
        subject: Subject,
        reason: Option<String>,
        by: Option<Arc<Principal>>,
        answer: Answer<Suspended, ControlError>,
    },
    Resume(Box<ResumeOrder>),
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

pub(crate) struct StartOrder {
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

pub(crate) struct ResumeOrder {
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

impl Order {
    /// Ends an execution that processes ended with.
    pub(crate) fn set_aside(error: Arc<str>) -> Self {
        Self::Abort { error, kind: ErrorKind::Interrupted }
    }

    /// Whether it goes to the execution although its mailbox is full: nobody would say it again
    /// soon, and there are no more of it than steps that wait for it.
    pub(crate) fn must_arrive(&self) -> bool {
        matches!(self, Self::Timer(_) | Self::ChildReported { .. })
    }

    /// Answers with what keeps anything from being done.
    pub(crate) fn refuse(self, why: Unavailable) {
        match self {
            Self::Start(order) => order.answer.refuse(why.into()),
            Self::Suspend { answer, .. } => drop(answer.send(Err(why.into()))),
            Self::Resume(order) => drop(order.answer.send(Err(why.into()))),
            Self::Cancel { answer, .. } => drop(answer.send(Err(why.into()))),
            Self::Describe { answer, .. } => drop(answer.send(Err(why.into()))),
            Self::Why { answer, .. } => drop(answer.send(Err(why.into()))),
            Self::Copy { answer, .. } => drop(answer.send(Err(why.into()))),
            Self::Subscribe { answer, .. } => drop(answer.send(Err(why.into()))),
            Self::AwaitOutcome { answer, .. } => drop(answer.send(Err(why.into()))),
            Self::Report { answer } => drop(answer.send(Err(why.into()))),
            Self::PassResume { answer, .. } => drop(answer.send(Err(why.into()))),
            Self::Stop { answer } => drop(answer.send(())),
            // Durable elsewhere: a timer in the store brings it back.
            Self::Timer(_) | Self::ChildReported { .. } | Self::Continue | Self::Abort { .. } => {}
        }
    }

    /// Answers that there is no such execution (for a start: see the supervisor).
    pub(crate) fn not_found(self) {
        match self {
            Self::Suspend { answer, .. } => drop(answer.send(Err(ControlError::NotFound))),
            Self::Resume(order) => {
                drop(order.answer.send(Err(ResumeError::NotFound.into())));
            }
            Self::Cancel { answer, .. } => drop(answer.send(Err(ControlError::NotFound))),
            Self::Describe { answer, .. } => drop(answer.send(Err(DescribeError::NotFound))),
            Self::Why { answer, .. } => drop(answer.send(Err(DescribeError::NotFound))),
            Self::Copy { answer, .. } => drop(answer.send(Err(ReplayError::NotFound))),
            Self::Subscribe { answer, .. } => drop(answer.send(Err(DescribeError::NotFound))),
            Self::AwaitOutcome { answer, .. } => drop(answer.send(Err(DescribeError::NotFound))),
            Self::Report { answer } => drop(answer.send(Err(DescribeError::NotFound))),
            Self::PassResume { answer, .. } => drop(answer.send(Err(ResumeError::NotFound))),
            Self::Stop { answer } => drop(answer.send(())),
            Self::Start(order) => order.answer.refuse(Unavailable::ActorLost.into()),
            Self::Timer(_) | Self::ChildReported { .. } | Self::Continue | Self::Abort { .. } => {}
        }
    }

    /// Whether no caller would ask again if the order were lost.
    pub(crate) fn is_nobodys(&self) -> bool {
        match self {
            Self::Continue | Self::Abort { .. } => true,
            Self::Start(_)
            | Self::Suspend { .. }
            | Self::Resume(_)
            | Self::Cancel { .. }
            | Self::Describe { .. }
            | Self::Why { .. }
            | Self::Copy { .. }
            | Self::Subscribe { .. }
            | Self::AwaitOutcome { .. }
            | Self::Timer(_)
            | Self::ChildReported { .. }
            | Self::Report { .. }
            | Self::PassResume { .. }
            | Self::Stop { .. } => false,
        }
    }

    /// Whether the order can wait until there is memory to bring its execution back: nobody waits
    /// for it, and it is said again as long as nothing has come of it.
    pub(crate) fn is_patient(&self) -> bool {
        match self {
            Self::Continue | Self::Timer(_) | Self::ChildReported { .. } => true,
            Self::Start(_)
            | Self::Suspend { .. }
            | Self::Resume(_)
            | Self::Cancel { .. }
            | Self::Describe { .. }
            | Self::Why { .. }
            | Self::Copy { .. }
            | Self::Subscribe { .. }
            | Self::AwaitOutcome { .. }
            | Self::Report { .. }
            | Self::PassResume { .. }
            | Self::Abort { .. }
            | Self::Stop { .. } => false,
        }
    }

    /// Whether a caller asks for something that keeps an execution in memory. What ends it or only
    /// reads it does not, nor what those ask that are in memory themselves.
    pub(crate) fn needs_room(&self) -> bool {
        match self {
            Self::Suspend { .. } | Self::Resume(_) | Self::Subscribe { .. } => true,
            Self::AwaitOutcome { subject, .. } => subject.is_some(),
            Self::Start(_)
            | Self::Cancel { .. }
            | Self::Describe { .. }
            | Self::Why { .. }
            | Self::Copy { .. }
            | Self::Report { .. }
            | Self::PassResume { .. }
            | Self::Timer(_)
            | Self::ChildReported { .. }
            | Self::Continue
            | Self::Abort { .. }
            | Self::Stop { .. } => false,
        }
    }

    /// Whether an execution is one that the order may be about.
    pub(crate) fn is_for(&self, header: &Header) -> bool {
        self.subject().is_none_or(|subject| subject.is(header))
    }

    fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Suspend { subject, .. }
            | Self::Cancel { subject, .. }
            | Self::Describe { subject, .. }
            | Self::Copy { subject, .. }
            | Self::Subscribe { subject, .. } => Some(subject),
            Self::Resume(order) => Some(&order.subject),
            Self::AwaitOutcome { subject, .. } | Self::Why { subject, .. } => subject.as_ref(),
            Self::Start(_)
            | Self::Timer(_)
            | Self::ChildReported { .. }
            | Self::Report { .. }
            | Self::PassResume { .. }
            | Self::Continue
            | Self::Abort { .. }
            | Self::Stop { .. } => None,
        }
    }
}
