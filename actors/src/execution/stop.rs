//! The end of the process, for one execution.

use actix::Context;

use crate::domain::machine::Command;
use crate::execution::ExecutionActor;
use crate::requests::Unavailable;

impl ExecutionActor {
    pub(super) fn stop(
        &mut self,
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
        let execution = Some(self.id.clone());
        for waiter in life.waiters.drain(..) {
            let execution = execution.clone();
            waiter.answer.refuse(Unavailable::Draining { execution });
        }
        life.stop = Some(answer);
    }
}
