//! Dispatches each command to its file.

use actix::Context;

use crate::commands::ExecutionCommand;
use crate::domain::machine::Command;
use crate::execution::outcome::OutcomeAnswer;
use crate::execution::{ExecutionActor, describe, report_of};
use crate::replay::Original;
use crate::shared::Shared;

impl ExecutionActor {
    pub(super) fn perform(&mut self, command: ExecutionCommand, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else {
            self.return_command(command);
            return;
        };
        if !command.is_for(&life.header) {
            command.not_found();
            return;
        }
        self.has_requests |= !matches!(command, ExecutionCommand::Continue);
        match command {
            ExecutionCommand::Start(command) => self.exists_already(*command),
            ExecutionCommand::Suspend(command) => self.suspend(command, ctx),
            ExecutionCommand::Resume(command) => self.resume(*command, ctx),
            ExecutionCommand::Cancel(command) => self.cancel(command, ctx),
            ExecutionCommand::Describe { answer, .. } => {
                let state = Box::new(describe(&life.header, &life.machine));
                self.answer_when_durable(answer, Ok(state));
            }
            ExecutionCommand::Why { answer, .. } => {
                let is_deciding = life.deciding.is_busy() || !life.pending.is_empty();
                let look = if is_deciding { Shared::report_while_busy } else { Shared::report_now };
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
            ExecutionCommand::Timer(key) => self.timer_fell_due(key, ctx),
            ExecutionCommand::ChildReported { path, report } => {
                self.on_child_report(path, report, ctx)
            }
            ExecutionCommand::Report { answer } => {
                let report = report_of(&life.machine);
                self.answer_when_durable(answer, Ok(report));
            }
            ExecutionCommand::PassResume { resume, idempotency, access, answer, .. } => {
                self.take_passed_resume((resume, access), idempotency, answer, ctx);
            }
            ExecutionCommand::Continue => self.recover(ctx),
            ExecutionCommand::Abort { error, kind } => {
                self.decide_and_record(Command::Abort { error, kind }, ctx);
            }
            ExecutionCommand::Stop { why, answer } => self.stop(why, answer, ctx),
        }
    }
}
