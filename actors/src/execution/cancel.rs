//! A cancel, asked for by a caller or by a parent that needs the execution no longer.

use std::sync::Arc;

use actix::Context;

use crate::commands::Answer;
use crate::domain::machine::{Command, Decision, Refusal};
use crate::domain::principal::Principal;
use crate::execution::ExecutionActor;
use crate::execution::record::AppendExtras;
use crate::ports::store::TimerKey;
use crate::requests::{Cancelled, ControlError};

impl ExecutionActor {
    pub(super) fn cancel(
        &mut self,
        reason: Option<String>,
        by: Option<Arc<Principal>>,
        answer: Answer<Cancelled, ControlError>,
        ctx: &mut Context<Self>,
    ) {
        let reason: Arc<str> = reason.map_or_else(|| "Cancelled on request".into(), Arc::from);
        let command = Command::Cancel { reason: Arc::clone(&reason), by: by.clone() };
        self.decide(command, ctx, |actor, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                actor.record(batch, AppendExtras::default(), ctx);
                let cancelled_at = actor.updated_at();
                let (execution_id, trace_id) = (actor.id.clone(), actor.trace_id());
                let cancelled = Cancelled { execution_id, trace_id, reason, cancelled_at, by };
                actor.answer_when_durable(answer, Ok(cancelled));
            }
            Err(Refusal::Already(status)) => {
                actor.answer_when_durable(answer, Err(ControlError::Already(status)));
            }
            Ok(Decision::Forward { .. }) | Err(_) => {
                drop(answer.send(Err(ControlError::NotFound)));
            }
        });
    }

    /// Nobody waits for this execution any more.
    pub(super) fn abandoned(&mut self, ctx: &mut Context<Self>) {
        let reason = Arc::from("The execution that started it no longer needs it");
        self.decide(
            Command::Cancel { reason, by: None },
            ctx,
            |actor, decision, ctx| match decision {
                Ok(Decision::Recorded(batch)) => actor.record(batch, AppendExtras::default(), ctx),
                Ok(Decision::Forward { .. }) | Err(_) => {
                    actor.forget_timer(TimerKey::Abandoned);
                }
            },
        );
    }
}
