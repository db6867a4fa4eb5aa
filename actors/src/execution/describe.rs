//! The view of an execution that callers get.

use std::sync::Arc;

use crate::domain::fact::Start;
use crate::domain::machine::Machine;
use crate::domain::state::{Compensating, Outcome};
use crate::ports::store::{Header, Status};
use crate::requests::{CompensationState, ExecutionState, Failure, Lineage};

/// Returns everything that callers may know.
pub(crate) fn describe(header: &Arc<Header>, machine: &Machine) -> ExecutionState {
    let state = machine.state();
    let plan = machine.plan();
    let outcome = state.end.as_ref().map(|end| &end.outcome);
    let suspensions = state.suspensions(plan);
    let is_suspended = state.announced == Status::Suspended;
    let shown = suspensions.first().filter(|_| is_suspended).cloned();
    ExecutionState {
        header: Arc::clone(header),
        status: state.announced,
        input: Arc::clone(&state.start.input),
        context: Arc::clone(&state.start.context),
        updated_at: state.updated_at,
        ended_at: state.end.as_ref().map(|end| end.at),
        result: outcome.and_then(Outcome::result).cloned(),
        error: outcome.and_then(Failure::of),
        cancel_reason: outcome.and_then(Outcome::cancel_reason).cloned(),
        suspension: shown.map(Arc::new),
        suspensions,
        steps: state.steps(plan),
        usage: state.usage.as_deref().copied(),
        last_seq: state.last_seq(),
        compensation: state.compensating.as_deref().map(|it| compensation_of(it, &state.start)),
        reversal_of: state.start.reversal.as_ref().map(|reversal| reversal.execution.clone()),
        replayed_from: state.start.replayed.as_ref().map(|replayed| Lineage {
            execution_id: replayed.execution.clone(),
            step_id: Arc::clone(&replayed.step_id),
            by: replayed.by.clone(),
        }),
        cancelled_by: state.end.as_ref().and_then(|end| end.by.clone()),
    }
}

fn compensation_of(compensating: &Compensating, start: &Start) -> CompensationState {
    let cause =
        start.reversal.as_ref().and_then(|reversal| reversal.cause.get("message")?.as_str());
    let reason = compensating.outcome.why().cloned().or_else(|| cause.map(Arc::from));
    let ended = compensating.begun.iter().filter(|it| it.node.output().is_some()).count();
    let skipped = compensating.skipped().count();
    CompensationState {
        since: compensating.since,
        reason: reason.unwrap_or_default(),
        completed: ended - skipped,
        skipped,
        remaining: compensating.begun.len() - ended + compensating.due.len(),
    }
}
