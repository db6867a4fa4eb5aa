//! Cancels by a caller, or by a parent that no longer needs the execution.

use std::sync::Arc;

use actix::Context;
use tokio::sync::oneshot;

use crate::commands::{Answer, ControlCommand, ExecutionCommand, Refuse as _};
use crate::domain::machine::{ChildStatus, Command, Decision, Refusal};
use crate::execution::ExecutionActor;
use crate::execution::deciding::NotRecorded;
use crate::execution::record::AppendExtras;
use crate::ports::store::TimerKey;
use crate::requests::{Cancelled, ControlError, DescribeError, Unavailable};

impl ExecutionActor {
    pub(super) fn cancel(&mut self, command: ControlCommand<Cancelled>, ctx: &mut Context<Self>) {
        let ControlCommand { reason, by, answer, .. } = command;
        let reason: Arc<str> = reason.map_or_else(|| "Cancelled on request".into(), Arc::from);
        let compensate = false;
        let command = Command::Cancel { reason: Arc::clone(&reason), by: by.clone(), compensate };
        self.control(command, answer, ctx, |actor| {
            let (execution_id, trace_id) = (actor.id.clone(), actor.trace_id());
            let state = actor.life.as_ref().map(|life| life.machine.state());
            let compensates = state.is_some_and(|state| state.end.is_none());
            let cancelled_at = actor.updated_at();
            Cancelled { execution_id, trace_id, reason, cancelled_at, by, compensates }
        });
    }

    /// Decides and records a cancel or a suspend, and answers the caller with what `recorded`
    /// returns.
    pub(super) fn control<T: 'static>(
        &mut self,
        command: Command,
        answer: Answer<T, ControlError>,
        ctx: &mut Context<Self>,
        recorded: impl FnOnce(&Self) -> T + 'static,
    ) {
        self.decide(command, ctx, |actor, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                actor.record(batch, AppendExtras::default(), ctx);
                let changed = recorded(actor);
                actor.answer_when_durable(answer, Ok(changed));
            }
            Err(NotRecorded::Refused(Refusal::Already(status))) => {
                actor.answer_when_durable(answer, Err(ControlError::Already(status)));
            }
            Err(NotRecorded::Refused(Refusal::Compensating)) => {
                actor.answer_when_durable(answer, Err(ControlError::Compensating));
            }
            Err(NotRecorded::Dropped(why)) => answer.refuse(why),
            // not of these commands
            Ok(Decision::Forward { .. } | Decision::Admit { .. } | Decision::Check { .. })
            | Err(NotRecorded::Refused(_) | NotRecorded::NotPassed(_)) => {
                drop(answer.send(Err(ControlError::NotFound)));
            }
        });
    }

    /// Cancels the execution because its parent no longer needs it. If the parent was cancelled, its
    /// reason is recorded here too.
    pub(super) fn cancel_abandoned(&mut self, ctx: &mut Context<Self>) {
        let parent = self.life.as_ref().and_then(|life| life.header.parent.clone());
        let Some(parent) = parent else {
            self.cancel_child(None, true, ctx);
            return;
        };
        let (answer, reply) = oneshot::channel();
        self.shared.deliver(parent.execution, ExecutionCommand::Report { answer });
        self.background_query(reply, ctx, |actor, report, ctx| {
            let status = match report {
                Ok(Ok(report)) => Some(report.status),
                Ok(Err(
                    DescribeError::NotFound | DescribeError::Unavailable(Unavailable::Corrupt(_)),
                )) => None,
                // the timer fires again
                Ok(Err(DescribeError::Unavailable(_))) | Err(_) => return,
            };
            // of a parent that failed, or continues without it, nothing else would undo its part
            let (reason, compensate) = match status {
                Some(ChildStatus::Cancelled { reason, compensates }) => (Some(reason), compensates),
                Some(
                    ChildStatus::Running
                    | ChildStatus::Suspended { .. }
                    | ChildStatus::Completed { .. }
                    | ChildStatus::Failed { .. },
                )
                | None => (None, true),
            };
            actor.cancel_child(reason.as_deref(), compensate, ctx);
        });
    }

    fn cancel_child(
        &mut self,
        parents_reason: Option<&str>,
        compensate: bool,
        ctx: &mut Context<Self>,
    ) {
        let reason = parents_reason.map_or_else(|| UNNEEDED.into(), reason_of_child);
        let command = Command::Cancel { reason: Arc::clone(&reason), by: None, compensate };
        self.decide(command, ctx, move |actor, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => actor.record(batch, AppendExtras::default(), ctx),
            Ok(Decision::Forward { .. } | Decision::Admit { .. } | Decision::Check { .. })
            | Err(NotRecorded::Refused(_) | NotRecorded::NotPassed(_)) => {
                actor.cancelled_too_late(&reason, compensate, ctx);
            }
            // the timer fires again
            Err(NotRecorded::Dropped(_)) => {}
        });
    }

    /// Undoes what has completed in the moment in which it was abandoned, by the rule of a cancel.
    fn cancelled_too_late(&mut self, reason: &str, compensate: bool, ctx: &mut Context<Self>) {
        let is_to_undo = self.life.as_ref().is_some_and(|life| {
            let plan = life.machine.plan();
            (compensate || plan.definition.compensate_on_cancel)
                && life.machine.state().is_reversible(plan)
        });
        if is_to_undo {
            self.reverse_itself(reason, ctx);
        } else {
            self.forget_timer(TimerKey::Abandoned);
        }
    }
}

/// Reason for a child whose parent has ended without it.
const UNNEEDED: &str = "The execution that started it no longer needs it";

const PARENT_CANCELLED: &str = "The execution that started it was cancelled: ";

/// Maximum number of bytes of its parent's reason that a child records.
const REASON_BYTES_MAX: usize = 4_096;

/// Returns the reason of a child whose parent was cancelled; grandchildren get the same.
fn reason_of_child(parents: &str) -> Arc<str> {
    if parents.starts_with(PARENT_CANCELLED) {
        return Arc::from(parents);
    }
    let kept = &parents[..parents.floor_char_boundary(REASON_BYTES_MAX)];
    Arc::from(format!("{PARENT_CANCELLED}{kept}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_record_the_reason_of_the_first_that_was_cancelled() {
        let first = reason_of_child("the shop closes");
        assert_eq!(&*first, "The execution that started it was cancelled: the shop closes");
        assert_eq!(reason_of_child(&first), first);
        let long = reason_of_child(&"\u{e9}".repeat(3_000));
        assert_eq!(long.len(), PARENT_CANCELLED.len() + REASON_BYTES_MAX);
    }
}
