//! Wakes executions after a change of the registry.

use actix::{Context, Handler, Message};

use crate::commands::ExecutionCommand;
use crate::execution::Perform;
use crate::mailbox::force_send;
use crate::shard::supervisor::{Entry, Supervisor};

/// A missing name may be registered now.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct RegistryChanged;

impl Handler<RegistryChanged> for Supervisor {
    type Result = ();

    /// Executions that are being loaded get their commands with the new registry anyway.
    fn handle(&mut self, _: RegistryChanged, _: &mut Context<Self>) {
        if self.stopping {
            return;
        }
        for entry in self.entries.values_mut() {
            if let Entry::Live(live) = entry {
                force_send(&live.address, Perform(ExecutionCommand::Continue));
                live.delivered += 1;
            }
        }
    }
}
