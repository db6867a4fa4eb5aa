//! Answers from the rows of an execution, to commands that need no actor.

use std::panic::AssertUnwindSafe;

use crate::commands::{ExecutionCommand, StartAnswer, StartCommand, StartRefusal};
use crate::execution::restore::Restored;
use crate::execution::{describe, report_of};
use crate::replay::Original;
use crate::requests::{StartError, Subscription};
use crate::shared::Shared;

/// Answers a command that needs no actor; returns any other. One that panics is dropped, which is
/// its answer: it must not end the reader of all the others.
pub(crate) fn answer_from_rows(
    shared: &Shared,
    restored: &Restored,
    command: ExecutionCommand,
) -> Option<ExecutionCommand> {
    let answer = AssertUnwindSafe(|| try_to_answer(shared, restored, command));
    std::panic::catch_unwind(answer).unwrap_or(None)
}

fn try_to_answer(
    shared: &Shared,
    restored: &Restored,
    command: ExecutionCommand,
) -> Option<ExecutionCommand> {
    let Restored { header, machine, .. } = restored;
    if !command.is_for(header) {
        command.not_found();
        return None;
    }
    let ended = machine.state().end.is_some();
    match command {
        ExecutionCommand::Start(start) => return answer_start(restored, *start),
        ExecutionCommand::Describe { answer, .. } => {
            drop(answer.send(Ok(Box::new(describe(header, machine)))));
        }
        ExecutionCommand::Why { answer, .. } => {
            drop(answer.send(Ok(Box::new(shared.report_now(header, machine)))));
        }
        ExecutionCommand::Copy { from, answer, .. } => {
            drop(answer.send(Original::of(machine, from)));
        }
        ExecutionCommand::Report { answer } => drop(answer.send(Ok(report_of(machine)))),
        ExecutionCommand::Abort { .. } if ended => {}
        ExecutionCommand::Subscribe { answer, .. } if ended => {
            let durable_seq = machine.state().last_seq();
            drop(answer.send(Ok(Subscription { durable_seq, ended })));
        }
        other @ (ExecutionCommand::Suspend(_)
        | ExecutionCommand::Resume(_)
        | ExecutionCommand::Cancel(_)
        | ExecutionCommand::Subscribe { .. }
        | ExecutionCommand::AwaitOutcome { .. }
        | ExecutionCommand::Timer(_)
        | ExecutionCommand::ChildReported { .. }
        | ExecutionCommand::PassResume { .. }
        | ExecutionCommand::Continue
        | ExecutionCommand::Abort { .. }
        | ExecutionCommand::Stop { .. }) => return Some(other),
    }
    None
}

/// Refuses a repeated start; the execution's own parent, and one that undoes the same, get its status.
fn answer_start(restored: &Restored, command: StartCommand) -> Option<ExecutionCommand> {
    let StartCommand { start, answer, .. } = command;
    match answer {
        StartAnswer::Parent(answer) if start.may_use(restored.header.parent.as_ref()) => {
            drop(answer.send(Ok(report_of(&restored.machine))));
            // It may have been running when the process ended.
            (!restored.machine.state().announced.is_terminal())
                .then_some(ExecutionCommand::Continue)
        }
        other => {
            let id = restored.header.id.clone();
            other.refuse(StartRefusal::Error(StartError::Exists(id)));
            None
        }
    }
}
