//! Notices that a subscriber has been forgotten.

use std::pin::Pin;
use std::task;

use actix::fut::ActorFuture;
use actix::{Actor, Context};

/// Future of an actor that resolves when no address of it is left, so that nothing reaches it any
/// longer, and it has handled what was sent before. A subscriber of an execution spawns it to learn
/// at once that the execution has dropped it, whether or not its mailbox had room for a message.
#[derive(Debug, Default)]
pub struct Forgotten {
    is_suspected: bool,
}

impl<A: Actor<Context = Context<A>>> ActorFuture<A> for Forgotten {
    type Output = ();

    fn poll(
        mut self: Pin<&mut Self>,
        _: &mut A,
        ctx: &mut Context<A>,
        task: &mut task::Context<'_>,
    ) -> task::Poll<()> {
        // The drop of the last address wakes the actor. An actor that is awake reads its mailbox
        // and polls its futures, in this order.
        if ctx.connected() {
            self.is_suspected = false;
            return task::Poll::Pending;
        }
        if std::mem::replace(&mut self.is_suspected, true) {
            return task::Poll::Ready(());
        }
        task.waker().wake_by_ref();
        task::Poll::Pending
    }
}
