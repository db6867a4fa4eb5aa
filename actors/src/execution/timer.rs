//! Timers that fell due.

use actix::Context;

use crate::domain::machine::Command;
use crate::execution::ExecutionActor;
use crate::ports::store::{TimerChange, TimerKey};

impl ExecutionActor {
    pub(super) fn time_has_come(&mut self, key: TimerKey, ctx: &mut Context<Self>) {
        match key {
            TimerKey::Node(path) => {
                let known = self.life.as_ref().is_some_and(|life| {
                    life.machine.node(&path).is_some_and(|(_, node)| node.armed_timer().is_some())
                });
                if known {
                    self.tell_machine(Command::TimerFired { path }, ctx);
                } else {
                    self.forget_timer(TimerKey::Node(path));
                }
            }
            TimerKey::AskChild(child) => self.ask_child(child, ctx),
            TimerKey::Abandoned => self.abandoned(ctx),
        }
    }

    /// Nobody needs the timer, and the record says so. While memory is ahead of it, the timer
    /// stays and comes up again: what was recorded meanwhile may yet be refused.
    pub(super) fn forget_timer(&self, key: TimerKey) {
        if self.life.as_ref().is_none_or(|life| !life.pending.is_empty()) {
            return;
        }
        let execution = self.id.clone();
        self.shared.store.change_timers(vec![TimerChange::Disarm { execution, key }]);
    }
}
