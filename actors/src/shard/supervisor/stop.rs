//! The end of the process, or of its service for some slots: stops executions.

use actix::{
    ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, MessageResult,
    ResponseActFuture, WrapFuture,
};
use futures_util::future::join_all;
use tokio::sync::oneshot;

use crate::commands::{Deliver, ExecutionCommand};
use crate::domain::ids::ExecutionId;
use crate::domain::slot::slot_of;
use crate::execution::{End, Perform};
use crate::mailbox::force_send;
use crate::requests::Unavailable;
use crate::shard::messages::{BusySlots, KillForTest, LeaveSlots};
use crate::shard::supervisor::{Entry, Supervisor};

/// Stops all executions; resolves when everything acknowledged is durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct StopAll;

impl Handler<StopAll> for Supervisor {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: StopAll, ctx: &mut Context<Self>) -> Self::Result {
        self.stopping = true;
        self.stop(|_| true, |id| Unavailable::Draining { execution: Some(id.clone()) }, ctx)
    }
}

impl Handler<LeaveSlots> for Supervisor {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, LeaveSlots(slots): LeaveSlots, ctx: &mut Context<Self>) -> Self::Result {
        let moved = |id: &ExecutionId| Unavailable::Moved { execution: Some(id.clone()) };
        self.stop(|id| slots.has(id), moved, ctx)
    }
}

impl Handler<BusySlots> for Supervisor {
    type Result = MessageResult<BusySlots>;

    fn handle(&mut self, _: BusySlots, _: &mut Context<Self>) -> Self::Result {
        let is_busy = |entry: &Entry| match entry {
            Entry::Live(live) => live.is_busy(),
            Entry::Loading(_) => true,
        };
        let busy = self.entries.iter().filter(|(_, entry)| is_busy(entry));
        MessageResult(busy.map(|(id, _)| slot_of(id)).collect())
    }
}

impl Supervisor {
    /// Stops executions, and unloads them when everything acknowledged is durable. Their callers
    /// get a refusal. Commands that wait for their execution to be read are handled anew: they have
    /// done nothing yet.
    fn stop(
        &mut self,
        is_meant: impl Fn(&ExecutionId) -> bool,
        refusal: impl Fn(&ExecutionId) -> Unavailable,
        ctx: &mut Context<Self>,
    ) -> ResponseActFuture<Self, ()> {
        let (mut stopped, mut keys) = (Vec::new(), Vec::new());
        for (id, entry) in self.entries.iter_mut().filter(|(id, _)| is_meant(id)) {
            match entry {
                Entry::Live(live) => {
                    let (answer, reply) = oneshot::channel();
                    let stop = ExecutionCommand::Stop { why: refusal(id), answer };
                    force_send(&live.address, Perform(stop));
                    live.delivered += 1;
                    stopped.push(reply);
                    keys.push(live.key);
                }
                Entry::Loading(loading) => {
                    for command in loading.commands.drain(..) {
                        ctx.notify(Deliver { id: id.clone(), command });
                    }
                }
            }
        }
        Box::pin(join_all(stopped).into_actor(self).map(|_, supervisor, _| {
            let ended = keys.into_iter().filter_map(|key| supervisor.unload(key));
            ended.for_each(|live| force_send(&live.address, End));
        }))
    }
}

impl Handler<KillForTest> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: KillForTest, ctx: &mut Context<Self>) {
        self.stopping = true;
        for entry in self.entries.values() {
            if let Entry::Live(live) = entry {
                force_send(&live.address, KillForTest);
            }
        }
        self.keys.clear();
        self.entries.clear();
        ctx.stop();
    }
}
