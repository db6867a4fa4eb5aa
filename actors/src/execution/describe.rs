//! The picture of an execution that callers get.

use std::sync::Arc;

use crate::domain::machine::Machine;
use crate::domain::state::Outcome;
use crate::ports::store::{Header, Status};
use crate::requests::{ExecutionState, Failure};

/// Everything that callers may know.
pub(crate) fn describe(header: &Arc<Header>, machine: &Machine) -> ExecutionState {
    let state = machine.state();
    let plan = machine.plan();
    let outcome = state.end.as_ref().map(|end| &end.outcome);
    let result = match outcome {
        Some(Outcome::Completed { result }) => Some(Arc::clone(result)),
        Some(Outcome::Failed { .. } | Outcome::Cancelled { .. }) | None => None,
    };
    let error = match outcome {
        Some(Outcome::Failed { error, step_id, path, class }) => Some(Failure {
            message: Arc::clone(error),
            step_id: step_id.clone(),
            path: path.clone(),
            class: *class,
        }),
        Some(Outcome::Completed { .. } | Outcome::Cancelled { .. }) | None => None,
    };
    let mut suspensions = if state.end.is_some() { Vec::new() } else { state.waiting(plan) };
    if state.hold.is_some() {
        suspensions.splice(0..0, state.shown_suspension(plan));
    }
    let is_suspended = state.announced == Status::Suspended;
    let shown = state.shown_suspension(plan).filter(|_| is_suspended);
    ExecutionState {
        header: Arc::clone(header),
        status: state.announced,
        input: Arc::clone(&state.start.input),
        context: Arc::clone(&state.start.context),
        updated_at: state.updated_at,
        ended_at: state.end.as_ref().map(|end| end.at),
        result,
        error,
        suspension: shown.map(Arc::new),
        suspensions,
        steps: state.steps(plan),
        usage: state.usage.as_deref().copied(),
        last_seq: state.last_seq(),
        replayed_from: state
            .start
            .replayed
            .as_ref()
            .map(|replayed| (replayed.execution.clone(), Arc::clone(&replayed.step_id))),
    }
}
