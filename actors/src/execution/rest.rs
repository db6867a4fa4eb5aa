//! The moments at which an execution leaves `running`, and who waits for them.

use std::sync::Arc;

use crate::commands::{Answer, ResumeRefusal, StartAnswer, StartRefusal};
use crate::domain::fact::{Fact, Recorded};
use crate::domain::ids::ExecutionId;
use crate::ports::store::{AppendError, Header, Status};
use crate::requests::{DescribeError, Failure, Rest, ResumeError, StartError, Unavailable};
use tokio::sync::oneshot::Sender;

/// A caller that waits for a rest.
pub(super) struct Waiter {
    /// Only a rest after this number is the caller's.
    pub(super) after_seq: u64,
    /// The append (by its last number) that the caller's wish went into: its refusal is an answer
    /// to this caller alone.
    pub(super) own_append: Option<u64>,
    pub(super) answer: RestAnswer,
}

/// Whether a caller's wish is about to be recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owns {
    NextAppend,
    Nothing,
}

pub(super) enum RestAnswer {
    Start(StartAnswer),
    Resume(Sender<Result<Rest, ResumeRefusal>>),
    Again(Answer<Rest, DescribeError>),
}

impl RestAnswer {
    /// Whether the caller has gone.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Start(StartAnswer::AtRest(answer)) => answer.is_closed(),
            Self::Start(StartAnswer::AtStart(answer)) => answer.is_closed(),
            Self::Start(StartAnswer::Parent(answer)) => answer.is_closed(),
            Self::Resume(answer) => answer.is_closed(),
            Self::Again(answer) => answer.is_closed(),
        }
    }

    pub(super) fn give(self, rest: &Rest) {
        match self {
            Self::Start(StartAnswer::AtRest(answer)) => drop(answer.send(Ok(rest.clone()))),
            Self::Resume(answer) => drop(answer.send(Ok(rest.clone()))),
            Self::Again(answer) => drop(answer.send(Ok(rest.clone()))),
            // These hear of the start, not of the rest.
            Self::Start(StartAnswer::AtStart(_) | StartAnswer::Parent(_)) => {}
        }
    }

    pub(super) fn refuse(self, why: Unavailable) {
        match self {
            Self::Start(answer) => answer.refuse(why.into()),
            Self::Resume(answer) => drop(answer.send(Err(why.into()))),
            Self::Again(answer) => drop(answer.send(Err(why.into()))),
        }
    }

    /// Answers with what the store said to the append that the caller's wish went into,
    /// where that means more to this caller than `why`.
    pub(super) fn refuse_append(self, id: &ExecutionId, error: &AppendError, why: &Unavailable) {
        match (self, error) {
            (Self::Start(answer), AppendError::Exists) => {
                answer.refuse(StartRefusal::Error(StartError::Exists(id.clone())));
            }
            (Self::Start(answer), AppendError::KeyTaken) => answer.refuse(StartRefusal::KeyTaken),
            (Self::Resume(answer), AppendError::KeyTaken) => {
                drop(answer.send(Err(ResumeRefusal::KeyTaken)));
            }
            (Self::Resume(answer), AppendError::Stale) => {
                // Somebody else moved the execution on: this resume came too late.
                drop(answer.send(Err(ResumeError::NotSuspended.into())));
            }
            (other, _) => other.refuse(why.clone()),
        }
    }
}

/// The rest that a fact is, if it is one.
pub(crate) fn rest_of(header: &Header, recorded: &Recorded) -> Option<Rest> {
    let at = recorded.at;
    let rest = |status, started_at, ended_at| Rest {
        execution_id: header.id.clone(),
        trace_id: Arc::clone(&header.trace.id),
        status,
        started_at,
        ended_at,
        result: None,
        error: None,
        suspension: None,
        others: None,
        cancel_reason: None,
    };
    match &recorded.fact {
        Fact::WorkflowSuspended { since, suspension, others } => {
            let suspension = Some(Arc::new((**suspension).clone()));
            let others = others.as_deref().cloned().map(Arc::new);
            Some(Rest { suspension, others, ..rest(Status::Suspended, *since, None) })
        }
        Fact::WorkflowCompleted { since, result } => {
            let result = Some(Arc::clone(result));
            Some(Rest { result, ..rest(Status::Completed, *since, Some(at)) })
        }
        Fact::WorkflowFailed { since, error, step_id, path, class } => {
            let error = Some(Failure {
                message: Arc::clone(error),
                step_id: step_id.clone(),
                path: path.clone(),
                class: *class,
            });
            Some(Rest { error, ..rest(Status::Error, *since, Some(at)) })
        }
        Fact::WorkflowCancelled { since, reason } => {
            let cancel_reason = Some(Arc::clone(reason));
            Some(Rest { cancel_reason, ..rest(Status::Cancelled, *since, Some(at)) })
        }
        Fact::WorkflowStarted(_)
        | Fact::StepStarted { .. }
        | Fact::StepCompleted { .. }
        | Fact::StepFailed { .. }
        | Fact::StepReleased { .. }
        | Fact::StepSkipped { .. }
        | Fact::StepCancelled { .. }
        | Fact::StepSuspended { .. }
        | Fact::StepResumed { .. }
        | Fact::StepSlept { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildStarted { .. }
        | Fact::ChildSuspended { .. }
        | Fact::ChildResumed { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. }
        | Fact::WorkflowResumed => None,
    }
}
