//! Notes of the tools of steps.

use actix::{Context, Handler, ResponseFuture};
use tokio::sync::oneshot;

use crate::agent::tool::StepNote;
use crate::domain::machine::{Command, Decision};
use crate::execution::ExecutionActor;

impl Handler<StepNote> for ExecutionActor {
    type Result = ResponseFuture<bool>;

    fn handle(&mut self, note: StepNote, ctx: &mut Context<Self>) -> Self::Result {
        let StepNote { path, attempt, memo } = note;
        let (taken, done) = oneshot::channel();
        let command = Command::NoteStep { path, attempt, memo };
        self.decide(command, ctx, move |actor, decision, ctx| {
            let is_noted = decision.as_ref().is_ok_and(Decision::has_facts);
            actor.take_decision(decision, ctx);
            actor.when_durable(Box::new(move |durable| {
                // a call that has ended meanwhile does not wait
                let _ = taken.send(is_noted && durable.is_ok());
            }));
        });
        Box::pin(async move { done.await.unwrap_or_default() })
    }
}
