//! After another registry has come: executions that lacked something look again.

use actix::{Context, Handler, Message};

use crate::commands::ExecutionCommand;
use crate::execution::Perform;
use crate::mailbox::tell;
use crate::shard::supervisor::{Entry, Supervisor};

/// What was lacking may be there now.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct LookAgain;

impl Handler<LookAgain> for Supervisor {
    type Result = ();

    /// Those that are being loaded are given their commands with the new registry anyway.
    fn handle(&mut self, _: LookAgain, _: &mut Context<Self>) {
        if self.stopping {
            return;
        }
        for entry in self.entries.values_mut() {
            if let Entry::Live(live) = entry {
                tell(&live.address, Perform(ExecutionCommand::Continue));
                live.delivered += 1;
            }
        }
    }
}
