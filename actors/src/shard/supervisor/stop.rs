//! The end of the process: stops all executions.

use actix::{
    ActorContext, ActorFutureExt, Context, Handler, Message, ResponseActFuture, WrapFuture,
};
use futures_util::future::join_all;
use tokio::sync::oneshot;

use crate::commands::ExecutionCommand;
use crate::execution::Perform;
use crate::requests::Unavailable;
use crate::shard::messages::KillForTest;
use crate::shard::supervisor::{Entry, Supervisor};

/// Stops all executions; resolves when everything acknowledged is durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct StopAll;

impl Handler<StopAll> for Supervisor {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: StopAll, _: &mut Context<Self>) -> Self::Result {
        self.stopping = true;
        let mut stopped = Vec::with_capacity(self.entries.len());
        for (id, entry) in &mut self.entries {
            match entry {
                Entry::Live(live) => {
                    let (answer, reply) = oneshot::channel();
                    crate::mailbox::force_send(
                        &live.address,
                        Perform(ExecutionCommand::Stop { answer }),
                    );
                    live.delivered += 1;
                    stopped.push(reply);
                }
                Entry::Loading(loading) => {
                    for command in loading.commands.drain(..) {
                        command.refuse(Unavailable::Draining { execution: Some(id.clone()) });
                    }
                }
            }
        }
        Box::pin(join_all(stopped).into_actor(self).map(|_, supervisor, _| {
            let keys: Vec<u64> = supervisor.keys.keys().copied().collect();
            keys.into_iter().for_each(|key| supervisor.unload(key));
        }))
    }
}

impl Handler<KillForTest> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: KillForTest, ctx: &mut Context<Self>) {
        self.stopping = true;
        for entry in self.entries.values() {
            if let Entry::Live(live) = entry {
                crate::mailbox::force_send(&live.address, KillForTest);
            }
        }
        self.keys.clear();
        self.entries.clear();
        ctx.stop();
    }
}
