//! The end of the process, or of its service, for one execution.

use actix::Context;

use crate::domain::machine::Command;
use crate::execution::ExecutionActor;
use crate::requests::Unavailable;

impl ExecutionActor {
    pub(super) fn stop(
        &mut self,
        why: &Unavailable,
        answer: tokio::sync::oneshot::Sender<()>,
        ctx: &mut Context<Self>,
    ) {
        if let Some(life) = &mut self.life {
            life.is_stopping = true;
        }
        self.drop_bodies(ctx);
        self.decide_ends_only(ctx);
        self.decide_and_record(Command::Release, ctx);
        let Some(life) = &mut self.life else { return };
        for waiter in life.waiters.drain(..) {
            waiter.answer.refuse(why.clone());
        }
        life.stop = Some(answer);
    }
}
