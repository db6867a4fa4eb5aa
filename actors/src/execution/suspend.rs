//! Suspends an execution from outside.

use std::sync::Arc;

use actix::Context;

use crate::commands::ControlCommand;
use crate::domain::machine::Command;
use crate::domain::principal::Principal;
use crate::execution::ExecutionActor;
use crate::requests::Suspended;

impl ExecutionActor {
    pub(super) fn suspend(&mut self, command: ControlCommand<Suspended>, ctx: &mut Context<Self>) {
        let ControlCommand { reason, by, answer, .. } = command;
        let reason: Arc<str> = reason.map_or_else(|| "Suspended on request".into(), Arc::from);
        let command = Command::Suspend { reason: Arc::clone(&reason), by };
        self.control(command, answer, ctx, |actor| {
            let suspended_at = actor.updated_at();
            let (execution_id, trace_id) = (actor.id.clone(), actor.trace_id());
            let (suspension_id, by) = actor.hold_placed();
            Suspended { suspension_id, execution_id, trace_id, reason, suspended_at, by }
        });
    }

    /// Returns the id of the pause that was just recorded, and its principal.
    fn hold_placed(&self) -> (Arc<str>, Option<Arc<Principal>>) {
        let hold = self.life.as_ref().and_then(|life| life.machine.state().hold.as_ref());
        hold.map(|hold| (Arc::clone(&hold.id), hold.by.clone())).unwrap_or_default()
    }
}
