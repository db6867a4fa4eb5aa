//! Hands each command to the file that carries it out.

use actix::Context;

use crate::commands::ExecutionCommand;
use crate::domain::machine::Command;
use crate::execution::outcome::OutcomeAnswer;
use crate::execution::{ExecutionActor, describe, report_of};
use crate::replay::Original;
use crate::requests::Unavailable;
use crate::shared::Shared;

impl ExecutionActor {
    pub(super) fn perform(&mut self, command: ExecutionCommand, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else {
            command.refuse(Unavailable::ActorLost);
            return;
        };
        if !command.is_for(&life.header) {
            command.not_found();
            return;
        }
        self.is_wanted |= !matches!(command, ExecutionCommand::Continue);
        match command {
            ExecutionCommand::Start(command) => self.exists_already(*command),
            ExecutionCommand::Suspend { reason, by, answer, .. } => {
                self.suspend(reason, by, answer, ctx)
            }
            ExecutionCommand::Resume(command) => self.resume(*command, ctx),
            ExecutionCommand::Cancel { reason, by, answer, .. } => {
                self.cancel(reason, by, answer, ctx)
            }
            ExecutionCommand::Describe { answer, .. } => {
                let state = Box::new(describe(&life.header, &life.machine));
                self.answer_when_durable(answer, Ok(state));
            }
            ExecutionCommand::Why { answer, .. } => {
                let is_at_work = life.deciding.is_busy() || !life.pending.is_empty();
                let look = if is_at_work { Shared::waits_at_work } else { Shared::waits_of };
                let wait_report = look(&self.shared, &life.header, &life.machine);
                self.answer_when_durable(answer, Ok(Box::new(wait_report)));
            }
            ExecutionCommand::Copy { from, answer, .. } => {
                let original = Original::of(&life.machine, from);
                self.answer_when_durable(answer, original);
            }
            ExecutionCommand::Subscribe { subscriber, answer, .. } => {
                self.subscribe(subscriber, answer, ctx)
            }
            ExecutionCommand::AwaitOutcome { after_seq, answer, .. } => {
                self.await_outcome(after_seq, OutcomeAnswer::Again(answer), ctx);
            }
            ExecutionCommand::Timer(key) => self.time_has_come(key, ctx),
            ExecutionCommand::ChildReported { path, report } => {
                self.on_child_report(path, report, ctx)
            }
            ExecutionCommand::Report { answer } => {
                let report = report_of(&life.machine);
                self.answer_when_durable(answer, Ok(report));
            }
            ExecutionCommand::PassResume { resume, idempotency, answer } => {
                self.take_passed_resume(resume, idempotency, answer, ctx);
            }
            ExecutionCommand::Continue => self.tell_machine(Command::Recover, ctx),
            ExecutionCommand::Abort { error, kind } => {
                self.tell_machine(Command::Abort { error, kind }, ctx);
            }
            ExecutionCommand::Stop { answer } => self.stop(answer, ctx),
        }
    }
}
