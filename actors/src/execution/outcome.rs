//! How an execution leaves `running`, and the callers that wait for it.

use std::sync::Arc;

use crate::commands::{Answer, ResumeRefusal, StartAnswer, StartRefusal};
use crate::domain::fact::{Ended, Fact, Recorded};
use crate::domain::ids::ExecutionId;
use crate::ports::store::{AppendError, Header};
use crate::requests::{
    DescribeError, ExecutionOutcome, Halted, ResumeError, StartError, Unavailable,
};
use tokio::sync::oneshot::Sender;

/// A caller that waits for an outcome.
pub(super) struct Waiter {
    /// Only an outcome after this number is the caller's.
    pub(super) after_seq: u64,
    /// The append (by its last number) that the caller's wish went into: its refusal is an answer
    /// to this caller alone.
    pub(super) own_append: Option<u64>,
    pub(super) answer: OutcomeAnswer,
}

/// Whether a caller's wish is about to be recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owns {
    NextAppend,
    Nothing,
}

pub(super) enum OutcomeAnswer {
    Start(StartAnswer),
    Resume(Sender<Result<ExecutionOutcome, ResumeRefusal>>),
    Again(Answer<ExecutionOutcome, DescribeError>),
}

impl OutcomeAnswer {
    /// Whether the caller has gone.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Start(StartAnswer::OnSettled(answer)) => answer.is_closed(),
            Self::Start(StartAnswer::AtStart(answer)) => answer.is_closed(),
            Self::Start(StartAnswer::Parent(answer)) => answer.is_closed(),
            Self::Resume(answer) => answer.is_closed(),
            Self::Again(answer) => answer.is_closed(),
        }
    }

    pub(super) fn give(self, outcome: &ExecutionOutcome) {
        match self {
            Self::Start(StartAnswer::OnSettled(answer)) => drop(answer.send(Ok(outcome.clone()))),
            Self::Resume(answer) => drop(answer.send(Ok(outcome.clone()))),
            Self::Again(answer) => drop(answer.send(Ok(outcome.clone()))),
            // These are answered at the start.
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

/// Returns how the execution left `running`, if this fact says so.
pub(crate) fn outcome_of(header: &Header, recorded: &Recorded) -> Option<ExecutionOutcome> {
    let (started_at, halted) = if let Some(Ended { since, how }) = recorded.fact.end() {
        (since, Halted::Ended { at: recorded.at, outcome: how.into() })
    } else if let Fact::WorkflowSuspended { since, suspension, others } = &recorded.fact {
        let suspension = Arc::new((**suspension).clone());
        let others = others.as_deref().cloned().map(Arc::new);
        (*since, Halted::Suspended { suspension, others })
    } else {
        return None;
    };
    let (execution_id, trace_id) = (header.id.clone(), Arc::clone(&header.trace.id));
    Some(ExecutionOutcome { execution_id, trace_id, started_at, halted })
}
