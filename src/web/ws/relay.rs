//! The actor that hears of spans for one WebSocket, whether or not its client reads.

use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, WrapFuture,
};
use bytestring::ByteString;
use greenroom_actors::Runtime;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::requests::Cut;
use greenroom_actors::span::{Observer, ObserverFilter, ObserverId, SpansObserved};
use serde::Serialize;

use crate::api::wire::span::{SpanEventView, Subscribed, Welcome};
use crate::web::outbox::{Outbox, Weight};

/// Batches of spans that may wait while the worker is busy.
const RELAY_MAILBOX: usize = 1024;

/// Registers with the runtime, writes frames, counts what finds no room, cuts who stalls.
pub(super) struct Relay {
    runtime: Arc<Runtime>,
    outbox: Outbox<ByteString>,
    cut: Cut,
    stall_max: Duration,
    registered: Option<ObserverId>,
    /// Number of the newest registration: an older one that comes late is undone.
    newest: u64,
    is_watching: bool,
}

impl Relay {
    /// Starts a relay on this thread.
    pub(super) fn launch(
        runtime: Arc<Runtime>,
        outbox: Outbox<ByteString>,
        cut: Cut,
        stall_max: Duration,
    ) -> Addr<Self> {
        Self::create(|ctx| {
            ctx.set_mailbox_capacity(RELAY_MAILBOX);
            let (registered, newest, is_watching) = (None, 0, false);
            Self { runtime, outbox, cut, stall_max, registered, newest, is_watching }
        })
    }

    /// Takes a registration in place of the one before. The new one is there before the old one
    /// goes: what matches both may come twice in between, and nothing is missed.
    fn keep(&mut self, id: ObserverId, number: u64) {
        let forgotten = if number == self.newest { self.registered.replace(id) } else { Some(id) };
        if let Some(forgotten) = forgotten {
            self.runtime.forget(forgotten);
        }
    }

    fn push<T: Serialize>(&mut self, frame: &T, ctx: &mut Context<Self>) {
        let text = match serde_json::to_string(frame) {
            Ok(text) => ByteString::from(text),
            Err(error) => {
                log::error!("a frame could not be written: {error}");
                return;
            }
        };
        let weight = Weight { events: 1, bytes: text.len() };
        if !self.outbox.push(text, weight) {
            self.watch(ctx);
        }
    }

    /// Looks again after the longest allowed stall, as long as there is one.
    fn watch(&mut self, ctx: &mut Context<Self>) {
        if self.is_watching {
            return;
        }
        self.is_watching = true;
        ctx.run_later(self.stall_max, |actor, ctx| {
            actor.is_watching = false;
            match actor.outbox.stalled_for() {
                Some(stall) if stall >= actor.stall_max => {
                    log::info!("an observer took nothing for {stall:?} and is cut");
                    (actor.cut)();
                    ctx.stop();
                }
                Some(_) => actor.watch(ctx),
                None => {}
            }
        });
    }
}

impl Actor for Relay {
    type Context = Context<Self>;

    fn stopped(&mut self, _: &mut Self::Context) {
        self.outbox.finish();
        if let Some(id) = self.registered.take() {
            self.runtime.forget(id);
        }
    }
}

/// Asks for the spans of a filter, in place of those of the one before.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Observe {
    pub(super) filter: ObserverFilter,
    pub(super) word: Word,
}

/// What the client is told as soon as nothing of its filter escapes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// That it is connected.
    Welcome,
    /// That its wish for another filter is fulfilled.
    Subscribed,
}

impl Handler<Observe> for Relay {
    type Result = ();

    fn handle(&mut self, command: Observe, ctx: &mut Self::Context) {
        let Observe { filter, word } = command;
        self.newest += 1;
        let number = self.newest;
        let spans = Some(ctx.address().recipient());
        let observer =
            Observer { spans, logs: None, filter: filter.clone(), cut: Arc::clone(&self.cut) };
        let runtime = Arc::clone(&self.runtime);
        let observing = async move { runtime.observe(observer).await };
        // A relay that stops meanwhile leaves a closed mailbox, which the runtime forgets.
        ctx.spawn(observing.into_actor(self).map(move |id, relay, ctx| {
            relay.keep(id, number);
            match word {
                Word::Welcome => relay.push(&Welcome::observer(&filter, SystemClock.now()), ctx),
                Word::Subscribed => relay.push(&Subscribed::frame(&filter), ctx),
            }
        }));
    }
}

impl Handler<SpansObserved> for Relay {
    type Result = ();

    fn handle(&mut self, message: SpansObserved, ctx: &mut Self::Context) {
        let SpansObserved { spans, missed } = message;
        if !self.outbox.has_reader() {
            ctx.stop();
            return;
        }
        self.outbox.miss(missed);
        for event in spans.iter() {
            self.push(&SpanEventView::frame(event, false), ctx);
        }
    }
}

/// The WebSocket has gone.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct SessionEnded;

impl Handler<SessionEnded> for Relay {
    type Result = ();

    fn handle(&mut self, _: SessionEnded, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

#[cfg(test)]
mod tests;
