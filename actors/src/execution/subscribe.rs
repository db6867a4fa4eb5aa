//! New subscribers, and the removal of disconnected ones.

use std::time::Duration;

use actix::{AsyncContext, Context};

use crate::commands::Answer;
use crate::execution::ExecutionActor;
use crate::requests::{DescribeError, Subscriber, Subscription, Unavailable};

/// Subscribers of one execution.
const SUBSCRIBERS_MAX: usize = 20_000;

impl ExecutionActor {
    pub(super) fn subscribe(
        &mut self,
        subscriber: Subscriber,
        answer: Answer<Subscription, DescribeError>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        if life.subscribers.count() >= SUBSCRIBERS_MAX {
            drop(answer.send(Err(Unavailable::Busy { execution: None }.into())));
            return;
        }
        let durable_seq = life.durable_seq;
        let ended = life.machine.state().end.is_some() && life.pending.is_empty();
        if !ended {
            self.add_subscriber(subscriber, ctx);
        }
        drop(answer.send(Ok(Subscription { durable_seq, ended })));
    }

    pub(super) fn add_subscriber(&mut self, subscriber: Subscriber, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        life.subscribers.add(subscriber);
        self.prune_regularly(ctx);
    }

    /// Starts to check for disconnected subscribers and callers, which would keep the execution in
    /// memory.
    pub(super) fn prune_regularly(&mut self, ctx: &mut Context<Self>) {
        let every = self.shared.limits.passivate_after.max(Duration::from_millis(100));
        let Some(life) = &mut self.life else { return };
        life.prune.get_or_insert_with(|| ctx.run_interval(every, |actor, ctx| actor.prune(ctx)));
    }

    fn prune(&mut self, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        life.subscribers.remove_disconnected();
        life.waiters.retain(|waiter| !waiter.answer.is_closed());
        if life.subscribers.is_empty()
            && life.waiters.is_empty()
            && let Some(handle) = life.prune.take()
        {
            ctx.cancel_future(handle);
        }
        self.report_if_idle(ctx);
    }
}
