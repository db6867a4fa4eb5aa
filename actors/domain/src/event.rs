//! Published events of each recorded fact: one pure function.

use crate::fact::{AfterFailure, Fact, Recorded};
use crate::ids::compensated_path;

/// An event on a stream. The front end defines the names on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    WorkflowStart,
    StepStart,
    StepComplete,
    StepError,
    StepSkipped,
    StepCancelled,
    StepSuspended,
    StepResumed,
    WorkflowSuspended,
    WorkflowResumed,
    WorkflowCompensating,
    CompensationStart,
    CompensationComplete,
    CompensationError,
    CompensationCancelled,
    WorkflowComplete,
    WorkflowError,
    WorkflowCancelled,
    WorkflowResult,
}

/// Returns the events of a fact, in order. The first has the fact's own number.
pub fn events_of(fact: &Fact) -> &'static [EventKind] {
    if let Some(path) = fact.step_path()
        && compensated_path(path).is_some()
    {
        return events_of_compensation(fact);
    }
    match fact {
        Fact::WorkflowStarted(_) => &[EventKind::WorkflowStart],
        Fact::StepStarted { .. } | Fact::StepSlept { .. } => &[EventKind::StepStart],
        Fact::StepCompleted { .. } => &[EventKind::StepComplete],
        Fact::StepFailed { .. } => &[EventKind::StepError],
        Fact::StepSkipped { .. } => &[EventKind::StepSkipped],
        Fact::StepCancelled { .. } => &[EventKind::StepCancelled],
        Fact::StepSuspended { .. } | Fact::ChildSuspended { .. } => &[EventKind::StepSuspended],
        Fact::StepResumed { .. } | Fact::ChildResumed { .. } => &[EventKind::StepResumed],
        Fact::StepReleased { .. }
        | Fact::StepNoted { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildStarted { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. } => &[],
        Fact::WorkflowSuspended { .. } => &[EventKind::WorkflowSuspended],
        Fact::WorkflowResumed => &[EventKind::WorkflowResumed],
        Fact::CompensationStarted { .. } => &[EventKind::WorkflowCompensating],
        Fact::WorkflowCompleted { .. } => &[EventKind::WorkflowComplete, EventKind::WorkflowResult],
        Fact::WorkflowFailed { .. } => &[EventKind::WorkflowError, EventKind::WorkflowResult],
        Fact::WorkflowCancelled { .. } => {
            &[EventKind::WorkflowCancelled, EventKind::WorkflowResult]
        }
    }
}

/// Returns the events of a fact about a compensation. It suspends and resumes like a step.
fn events_of_compensation(fact: &Fact) -> &'static [EventKind] {
    match fact {
        Fact::StepStarted { .. } | Fact::StepSlept { .. } => &[EventKind::CompensationStart],
        Fact::StepCompleted { .. } => &[EventKind::CompensationComplete],
        Fact::StepFailed { .. } => &[EventKind::CompensationError],
        Fact::StepCancelled { .. } => &[EventKind::CompensationCancelled],
        Fact::StepSuspended { .. } | Fact::ChildSuspended { .. } => &[EventKind::StepSuspended],
        Fact::StepResumed { .. } | Fact::ChildResumed { .. } => &[EventKind::StepResumed],
        Fact::StepSkipped { .. }
        | Fact::StepReleased { .. }
        | Fact::StepNoted { .. }
        | Fact::TimerFired { .. }
        | Fact::ChildStarted { .. }
        | Fact::WorkflowStarted(_)
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. }
        | Fact::WorkflowSuspended { .. }
        | Fact::WorkflowResumed
        | Fact::CompensationStarted { .. }
        | Fact::WorkflowCompleted { .. }
        | Fact::WorkflowFailed { .. }
        | Fact::WorkflowCancelled { .. } => &[],
    }
}

impl Recorded {
    /// Returns the number of the first event after this fact's events.
    pub fn next_seq(&self) -> u64 {
        self.seq + events_of(&self.fact).len() as u64
    }
}

impl AfterFailure {
    /// Returns true if another attempt follows.
    pub fn will_retry(&self) -> bool {
        match self {
            Self::Retry { .. } => true,
            Self::Fail | Self::Continue { .. } | Self::Ask => false,
        }
    }
}
