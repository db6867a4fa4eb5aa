//! Subscriptions of a stream: the first one, and a further one whenever the execution's actor is
//! lost.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::ActorFutureExt;
use actix::{Addr, AsyncContext, Context, WrapFuture};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::observe::forgotten::Forgotten;
use greenroom_actors::ports::store::FactCursor;
use greenroom_actors::requests::{DescribeError, Subscriber, Unavailable};
use greenroom_actors::runtime::Subscription;

use crate::web::sse::actor::{EventStreamActor, Mode};

/// Pause before the second attempt to subscribe again. The first one is made at once.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Pauses before attempts to subscribe again, each twice as long as the one before.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    /// Returns the next pause, at most the longest one.
    fn take(&mut self, longest: Duration) -> Duration {
        let pause = self.next.min(longest);
        self.next = if pause.is_zero() { FIRST_PAUSE } else { 2 * pause };
        pause
    }

    /// The subscription has lasted: the next one is made at once.
    pub(super) fn reset(&mut self) {
        self.next = Duration::ZERO;
    }
}

impl EventStreamActor {
    /// Returns the mode that continues after the last event passed on: from the journal up to the
    /// mark, then live.
    pub(super) fn begin(&mut self, execution: ExecutionId, subscription: Subscription) -> Mode {
        let Subscription { durable_seq, ended } = subscription;
        let (live_upto, live_ended) = match self.mode {
            Mode::Waiting { upto, ended } => (upto, ended),
            Mode::Live | Mode::Recorded { .. } => (0, false),
        };
        self.execution = Some(execution);
        // One less: the last event may have been the first of its fact's two.
        let from = FactCursor::above(self.after.saturating_sub(1));
        Mode::Recorded { from, upto: durable_seq.max(live_upto), ended: ended || live_ended }
    }

    /// Subscribes again when the execution has forgotten this subscriber. One that reads the
    /// journal notices it when it is live again.
    pub(super) fn await_loss(&mut self, ctx: &mut Context<Self>) {
        if self.is_awaiting_loss || !matches!(self.mode, Mode::Live) {
            return;
        }
        self.is_awaiting_loss = true;
        ctx.spawn(Forgotten::default().map(|(), actor: &mut Self, ctx| {
            actor.is_awaiting_loss = false;
            if matches!(actor.mode, Mode::Live) {
                actor.lose(ctx);
            }
        }));
    }

    /// Subscribes again, after a pause if that had to be done before. The last batch may not have
    /// fitted into the mailbox, or the execution's actor was lost.
    fn lose(&mut self, ctx: &mut Context<Self>) {
        self.mode = Mode::Waiting { upto: 0, ended: false };
        match self.pauses.take(self.heartbeat.interval()) {
            Duration::ZERO => self.subscribe_again(ctx),
            pause => {
                ctx.run_later(pause, Self::subscribe_again);
            }
        }
    }

    fn subscribe_again(&mut self, ctx: &mut Context<Self>) {
        let Some(execution) = self.execution.clone() else {
            // Without any event, the start was never recorded.
            self.finish(ctx);
            return;
        };
        let subscriber = subscriber_at(&ctx.address(), &self.connection.disconnect);
        let subscribing = self.source.subscribe(execution.clone(), subscriber);
        ctx.spawn(subscribing.into_actor(self).map(|subscribed, actor, ctx| match subscribed {
            Ok(subscription) => {
                actor.mode = actor.begin(execution, subscription);
                actor.read_on(ctx);
            }
            Err(error) if is_passing(&error) => {
                log::debug!("cannot subscribe to execution {execution} again yet: {error}");
                actor.lose(ctx);
            }
            Err(error) => {
                log::debug!("cannot subscribe to execution {execution} again: {error}");
                actor.give_up("the execution is not available", ctx);
            }
        }));
    }
}

/// Returns true if a later attempt to subscribe may succeed. A process that drains ends its streams
/// itself.
fn is_passing(error: &DescribeError) -> bool {
    match error {
        DescribeError::NotFound => false,
        DescribeError::Unavailable(Unavailable::Draining { .. }) => true,
        DescribeError::Unavailable(why) => why.is_passing(),
    }
}

/// Returns the subscriber for an execution to send its events and progress to.
pub(in crate::web::sse) fn subscriber_at(
    actor: &Addr<EventStreamActor>,
    disconnect: &Disconnect,
) -> Subscriber {
    Subscriber {
        events: actor.clone().recipient(),
        progress: Some(actor.clone().recipient()),
        disconnect: Arc::clone(disconnect),
    }
}
