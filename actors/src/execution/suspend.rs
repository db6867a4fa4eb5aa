//! Suspends an execution from outside.

use std::sync::Arc;

use actix::Context;

use crate::commands::Answer;
use crate::domain::machine::{Command, Decision, Refusal};
use crate::domain::principal::Principal;
use crate::execution::ExecutionActor;
use crate::execution::record::AppendExtras;
use crate::requests::{ControlError, Suspended};

impl ExecutionActor {
    pub(super) fn suspend(
        &mut self,
        reason: Option<String>,
        by: Option<Arc<Principal>>,
        answer: Answer<Suspended, ControlError>,
        ctx: &mut Context<Self>,
    ) {
        let reason: Arc<str> = reason.map_or_else(|| "Suspended on request".into(), Arc::from);
        let command = Command::Suspend { reason: Arc::clone(&reason), by };
        self.decide(command, ctx, |actor, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                actor.record(batch, AppendExtras::default(), ctx);
                let suspended_at = actor.updated_at();
                let (execution_id, trace_id) = (actor.id.clone(), actor.trace_id());
                let (suspension_id, by) = actor.hold_placed();
                let suspended =
                    Suspended { suspension_id, execution_id, trace_id, reason, suspended_at, by };
                actor.answer_when_durable(answer, Ok(suspended));
            }
            Err(Refusal::Already(status)) => {
                actor.answer_when_durable(answer, Err(ControlError::Already(status)));
            }
            Ok(Decision::Forward { .. }) | Err(_) => {
                drop(answer.send(Err(ControlError::NotFound)));
            }
        });
    }

    /// The hold that was just placed, and by whom.
    fn hold_placed(&self) -> (Arc<str>, Option<Arc<Principal>>) {
        let hold = self.life.as_ref().and_then(|life| life.machine.state().hold.as_ref());
        hold.map(|hold| (Arc::clone(&hold.id), hold.by.clone())).unwrap_or_default()
    }
}
