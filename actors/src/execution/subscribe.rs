//! A new subscriber, and noticing those that have left.

use std::time::Duration;

use actix::{AsyncContext, Context};

use crate::commands::Answer;
use crate::execution::ExecutionActor;
use crate::requests::{DescribeError, Subscriber, Subscription, Unavailable};

/// Readers of one execution.
const READERS_MAX: usize = 20_000;

impl ExecutionActor {
    pub(super) fn subscribe(
        &mut self,
        subscriber: Subscriber,
        answer: Answer<Subscription, DescribeError>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        if life.readers.count() >= READERS_MAX {
            drop(answer.send(Err(Unavailable::Busy { execution: None }.into())));
            return;
        }
        let durable_seq = life.durable_seq;
        let ended = life.machine.state().end.is_some() && life.pending.is_empty();
        if !ended {
            self.add_reader(subscriber, ctx);
        }
        drop(answer.send(Ok(Subscription { durable_seq, ended })));
    }

    pub(super) fn add_reader(&mut self, subscriber: Subscriber, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        life.readers.add(subscriber);
        self.look_for_who_has_left(ctx);
    }

    /// Readers and waiting callers keep the execution in memory; those who have left are noticed
    /// here.
    pub(super) fn look_for_who_has_left(&mut self, ctx: &mut Context<Self>) {
        let every = self.shared.limits.passivate_after.max(Duration::from_millis(100));
        let Some(life) = &mut self.life else { return };
        life.prune.get_or_insert_with(|| {
            ctx.run_interval(every, |actor, ctx| actor.forget_who_has_left(ctx))
        });
    }

    fn forget_who_has_left(&mut self, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        life.readers.forget_gone();
        life.waiters.retain(|waiter| !waiter.answer.is_closed());
        if life.readers.is_empty()
            && life.waiters.is_empty()
            && let Some(handle) = life.prune.take()
        {
            ctx.cancel_future(handle);
        }
        self.report_if_idle(ctx);
    }
}
