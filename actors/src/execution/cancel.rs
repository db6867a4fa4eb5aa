//! Cancels by a caller, or by a parent that no longer needs the execution.

use std::sync::Arc;

use actix::Context;

use crate::commands::{Answer, ControlCommand, Refuse as _};
use crate::domain::machine::{Command, Decision, Refusal};
use crate::execution::ExecutionActor;
use crate::execution::deciding::NotRecorded;
use crate::execution::record::AppendExtras;
use crate::ports::store::TimerKey;
use crate::requests::{Cancelled, ControlError};

impl ExecutionActor {
    pub(super) fn cancel(&mut self, command: ControlCommand<Cancelled>, ctx: &mut Context<Self>) {
        let ControlCommand { reason, by, answer, .. } = command;
        let reason: Arc<str> = reason.map_or_else(|| "Cancelled on request".into(), Arc::from);
        let command = Command::Cancel { reason: Arc::clone(&reason), by: by.clone() };
        self.control(command, answer, ctx, |actor| {
            let (execution_id, trace_id) = (actor.id.clone(), actor.trace_id());
            Cancelled { execution_id, trace_id, reason, cancelled_at: actor.updated_at(), by }
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
            Err(NotRecorded::Dropped(why)) => answer.refuse(why),
            Ok(Decision::Forward { .. } | Decision::Admit { .. })
            | Err(NotRecorded::Refused(_)) => {
                drop(answer.send(Err(ControlError::NotFound)));
            }
        });
    }

    /// Cancels the execution because its parent no longer needs it.
    pub(super) fn cancel_abandoned(&mut self, ctx: &mut Context<Self>) {
        let reason = Arc::from("The execution that started it no longer needs it");
        self.decide(
            Command::Cancel { reason, by: None },
            ctx,
            |actor, decision, ctx| match decision {
                Ok(Decision::Recorded(batch)) => actor.record(batch, AppendExtras::default(), ctx),
                Ok(Decision::Forward { .. } | Decision::Admit { .. })
                | Err(NotRecorded::Refused(_)) => {
                    actor.forget_timer(TimerKey::Abandoned);
                }
                // the timer fires again
                Err(NotRecorded::Dropped(_)) => {}
            },
        );
    }
}
