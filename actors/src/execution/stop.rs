//! The end of the process, or of its service, for one execution.

use actix::Context;
use tokio::sync::oneshot;

use crate::commands::{ExecutionCommand, Refuse as _};
use crate::domain::machine::Command;
use crate::execution::ExecutionActor;
use crate::execution::outcome::Waiter;
use crate::requests::Unavailable;

impl ExecutionActor {
    pub(super) fn stop(
        &mut self,
        why: Unavailable,
        answer: oneshot::Sender<()>,
        ctx: &mut Context<Self>,
    ) {
        if let Some(life) = &mut self.life {
            life.stopping = Some(why.clone());
        }
        self.await_records(ctx);
        self.drop_bodies(ctx);
        self.decide_ends_only(why, ctx);
        self.decide_and_record(Command::Release, ctx);
        let Some(life) = &mut self.life else { return };
        life.stops.push(answer);
        for waiter in std::mem::take(&mut life.waiters) {
            self.leave_waiter(waiter);
        }
    }

    /// Answers a caller of an execution that stops: with the reason, or with the outcome that the
    /// next owner of the execution records.
    pub(super) fn leave_waiter(&self, Waiter { after_seq, answer, .. }: Waiter) {
        let stopping = self.life.as_ref().and_then(|life| life.stopping.clone());
        if let Some(why) = stopping.filter(|why| !matches!(why, Unavailable::Moved { .. })) {
            answer.refuse(why);
            return;
        }
        let (reply, outcome) = oneshot::channel();
        let command = ExecutionCommand::AwaitOutcome { subject: None, after_seq, answer: reply };
        self.shared.deliver(self.id.clone(), command);
        let execution = Some(self.id.clone());
        actix::spawn(async move {
            match outcome.await {
                Ok(Ok(outcome)) => answer.give(&outcome),
                // whatever the reason: what the caller asked for may be recorded
                Ok(Err(_)) | Err(_) => answer.refuse(Unavailable::Moved { execution }),
            }
        });
    }
}
