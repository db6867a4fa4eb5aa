//! State of an execution, as a caller sees it.

use std::sync::Arc;

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{ExecutionOutcome, ExecutionState, Halted};
use serde_json::Value;

/// State of an execution, with what a caller gets of it.
#[derive(Debug, Clone, PartialEq)]
pub enum RunState {
    Running,
    Suspended(Vec<Suspension>),
    Completed(Arc<Value>),
    /// With the step that failed, if one did. The reason is in the state of the execution.
    Failed(Option<Arc<str>>),
    /// With the reason, if there is one.
    Cancelled(Option<Arc<str>>),
}

impl RunState {
    /// Returns what an outcome says.
    pub fn of_outcome(outcome: &ExecutionOutcome) -> Self {
        match &outcome.halted {
            Halted::Suspended { suspension, others } => {
                let others = others.iter().flat_map(|others| &others.suspensions);
                Self::Suspended(std::iter::once(&**suspension).chain(others).cloned().collect())
            }
            Halted::Ended { outcome: end, .. } => match (end.result(), outcome.failure()) {
                (Some(result), _) => Self::Completed(Arc::clone(result)),
                (None, Some(failure)) => Self::Failed(failure.path.or(failure.step_id)),
                (None, None) => Self::Cancelled(end.cancel_reason().cloned()),
            },
        }
    }

    /// Returns what a state says.
    pub fn of_state(state: &ExecutionState) -> Self {
        match state.status {
            Status::Running => Self::Running,
            Status::Suspended => Self::Suspended(state.suspensions.clone()),
            Status::Completed => Self::Completed(state.result.clone().unwrap_or_default()),
            Status::Cancelled => Self::Cancelled(state.cancel_reason.clone()),
            Status::Error => {
                let failure = state.error.clone();
                Self::Failed(failure.and_then(|failure| failure.path.or(failure.step_id)))
            }
        }
    }
}
