//! Timers that fell due.

use actix::Context;

use crate::domain::machine::Command;
use crate::execution::ExecutionActor;
use crate::ports::store::{TimerChange, TimerKey};

impl ExecutionActor {
    pub(super) fn timer_fell_due(&mut self, key: TimerKey, ctx: &mut Context<Self>) {
        match key {
            TimerKey::Node(path) => {
                let known = self.life.as_ref().is_some_and(|life| {
                    life.machine.node(&path).is_some_and(|(_, node)| node.armed_timer().is_some())
                });
                if known {
                    self.decide_and_record(Command::TimerFired { path }, ctx);
                } else {
                    self.forget_timer(TimerKey::Node(path));
                }
            }
            TimerKey::AskChild(child) => self.ask_child(child, ctx),
            TimerKey::Abandoned => self.cancel_abandoned(ctx),
        }
    }

    /// Deletes a timer that is no longer needed. While memory is ahead of the journal, it stays and
    /// fires again: an append under way may still be rejected.
    pub(super) fn forget_timer(&self, key: TimerKey) {
        if self.life.as_ref().is_none_or(|life| !life.pending.is_empty()) {
            return;
        }
        let execution = self.id.clone();
        let disarm = TimerChange::Disarm { execution, key };
        self.shared.store.change_timers(self.shard, vec![disarm]);
    }
}
