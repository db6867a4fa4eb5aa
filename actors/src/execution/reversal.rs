//! Reversals: children that compensate the steps of an earlier child, which has completed.

use std::sync::Arc;

use actix::Context;

use crate::domain::fact::Start;
use crate::domain::failure::{AttemptFailure, ErrorClass, ErrorKind};
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::{ChildCall, Machine, Reversed};
use crate::execution::ExecutionActor;
use crate::execution::restore::{Restored, restore};
use crate::ports::store::TimerKey;
use crate::requests::{StartError, Unavailable};

impl ExecutionActor {
    /// Starts a reversal whose start is recorded. The reversed execution has ended, so its record is
    /// read here, whichever process it ran in.
    pub(super) fn start_reversal(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: &ChildCall,
        reversed: &Reversed,
        ctx: &mut Context<Self>,
    ) {
        let (shared, execution) = (Arc::clone(&self.shared), reversed.execution.clone());
        let read = async move { restore(&shared, &execution).await };
        let (path, call, reversed) = (Arc::clone(path), call.clone(), reversed.clone());
        self.background_query(read, ctx, move |actor, read, ctx| {
            if !actor.is_current(&path, attempt) {
                return;
            }
            match read {
                Ok(read) => actor.reverse(&path, attempt, (&call, &reversed), read, ctx),
                Err(Unavailable::Corrupt(why)) => {
                    let why = format!("execution {} cannot be reversed: {why}", reversed.execution);
                    actor.fail_attempt(&path, attempt, impossible(why), ctx);
                }
                Err(_) => actor.retry_child_later(&path, attempt, ctx),
            }
        });
    }

    fn reverse(
        &mut self,
        path: &StepPath,
        attempt: u32,
        (call, reversed): (&ChildCall, &Reversed),
        read: Option<Restored>,
        ctx: &mut Context<Self>,
    ) {
        let started = match read {
            Some(read) => self
                .reversal_start(path, (call, reversed), &read.machine)
                .map(|start| (Arc::clone(read.machine.plan()), start)),
            None => Err(impossible(deleted(&reversed.execution))),
        };
        match started {
            Ok((plan, start)) => self.send_start(path, attempt, call, (&plan, start), ctx),
            Err(failure) => self.fail_attempt(path, attempt, failure, ctx),
        }
    }

    fn reversal_start(
        &self,
        path: &StepPath,
        (call, reversed): (&ChildCall, &Reversed),
        original: &Machine,
    ) -> Result<Box<Start>, AttemptFailure> {
        let id = &reversed.execution;
        let reversal = original.reversal(Arc::clone(&reversed.cause)).ok_or_else(|| {
            impossible(format!("execution {id} cannot be reversed: it has not completed"))
        })?;
        if !original.state().is_reversible(original.plan()) {
            return Err(impossible(format!(
                "execution {id} cannot be reversed: its record shows nothing to undo, although it \
                 reported something. Undo its effects by hand and answer `skip`"
            )));
        }
        let start = self.child_start(path, call, original.plan())?;
        let known = &original.state().start;
        // Its compensations get what its steps had.
        Ok(Box::new(Start {
            input: Arc::clone(&known.input),
            user_id: known.user_id.clone(),
            conversation_id: known.conversation_id.clone(),
            context: Arc::clone(&known.context),
            reversal: Some(Box::new(reversal)),
            ..*start
        }))
    }

    /// Starts the reversal of this execution, which has completed and is not part of what its parent
    /// compensates: the step was cancelled in the same moment, or has refused its output.
    pub(super) fn reverse_itself(&mut self, why: &str, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let machine = &life.machine;
        let Some((id, reversal)) = machine.reversal_without_parent(why) else { return };
        let start =
            Start { reversal: Some(Box::new(reversal)), ..(*machine.state().start).clone() };
        let started = self.deliver_start(id, machine.plan(), Box::new(start));
        self.background_query(started, ctx, |actor, started, _| match started {
            Ok(Ok(_)) => actor.forget_timer(TimerKey::Abandoned),
            // the timer fires again
            Ok(Err(StartError::Unavailable(_))) | Err(_) => {}
            Ok(Err(error)) => {
                log::error!("execution {} cannot be reversed: {error}", actor.id);
                actor.forget_timer(TimerKey::Abandoned);
            }
        });
    }
}

fn deleted(id: &ExecutionId) -> String {
    format!(
        "execution {id} cannot be reversed: it is no longer stored. Undo its effects by hand and \
         answer `skip`. [retention] should keep it until the executions that need it have ended"
    )
}

/// Returns a failure that no other attempt would change, so that a person is asked at once.
fn impossible(message: String) -> AttemptFailure {
    let failure = AttemptFailure::new(ErrorKind::Workflow, message);
    let class = failure.class.map(|class| ErrorClass { is_terminal: true, ..class });
    AttemptFailure { class, ..failure }
}
