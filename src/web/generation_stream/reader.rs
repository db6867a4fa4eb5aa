//! The actor that follows one generation for one connection.

use std::any::Any;
use std::sync::Arc;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message,
    ResponseFuture, WrapFuture,
};
use actix_web::web::Bytes;
use greenroom_actors::agent::generation::{FailureKind, GenerationEvent, GenerationProgress};
use greenroom_actors::observe::disconnect::Disconnect;

use crate::api::wire::generation_stream::GenerationStream;
use crate::web::outbox::{Outbox, Weight};
use crate::web::peer::{WATCH_INTERVAL, Watch};
use crate::web::settings::Settings;

/// Batches that may wait while the worker is busy. One that finds no room ends the stream.
const READER_MAILBOX: usize = 1024;
/// Bytes that go to the connection as one: what a slow client has to take to count as reading.
const PIECE_BYTES: usize = 64 * 1024;
/// Comments carry no event: they take no room.
const NO_EVENT: Weight = Weight { events: 0, bytes: 0 };

/// Follows one generation for one connection.
pub(super) struct GenerationReader {
    stream: GenerationStream,
    settings: Arc<Settings>,
    outbox: Outbox<Bytes>,
    disconnect: Disconnect,
    client: Watch,
    /// Keeps the generation alive where nobody else does.
    held: Option<Box<dyn Any + Send>>,
    /// Nobody was left at the last look who could tell of more.
    is_alone: bool,
    /// The answer has been given its head; until then a refusal may still be sent in its place.
    has_begun: bool,
    /// Nothing more will come: what is queued is still to be read.
    has_ended: bool,
    is_watching: bool,
}

impl GenerationReader {
    pub(super) fn new(
        stream: GenerationStream,
        settings: Arc<Settings>,
        outbox: Outbox<Bytes>,
        disconnect: Disconnect,
        client: Watch,
    ) -> Self {
        Self {
            stream,
            settings,
            outbox,
            disconnect,
            client,
            held: None,
            is_alone: false,
            has_begun: false,
            has_ended: false,
            is_watching: false,
        }
    }

    /// Starts the reader on this thread.
    pub(super) fn launch(self) -> Addr<Self> {
        Self::create(|ctx| {
            ctx.set_mailbox_capacity(READER_MAILBOX);
            self
        })
    }

    /// Passes events on; after one that cannot be, the connection and the reader end.
    fn pass_on(&mut self, events: &[GenerationEvent], ctx: &mut Context<Self>) {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for event in events {
            let is_behind = self.outbox.is_filling();
            let written = self.stream.write(event, is_behind, &mut bytes);
            count += 1;
            let is_last = event.is_last();
            let is_due = is_last || bytes.len() >= PIECE_BYTES;
            let is_taken = !is_due || self.push(std::mem::take(&mut bytes), count);
            if written.is_err() || !is_taken {
                self.break_off(ctx);
                return;
            }
            if is_last {
                self.end(ctx);
                return;
            }
            if is_due {
                count = 0;
            }
        }
        if !self.push(bytes, count) {
            self.break_off(ctx);
        }
    }

    /// Queues bytes in pieces; tells whether there was room for all of them.
    fn push(&self, bytes: Vec<u8>, events: usize) -> bool {
        let (mut rest, mut events) = (Bytes::from(bytes), events);
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            let weight = Weight { events: std::mem::take(&mut events), bytes: piece.len() };
            if !self.outbox.push(piece, weight) {
                return false;
            }
        }
        true
    }

    /// A generation cannot be read again: what a client missed makes the rest worthless. A
    /// connection whose answer has not begun is left to who answers.
    fn break_off(&mut self, ctx: &mut Context<Self>) {
        if !self.has_begun {
            self.has_ended = true;
            return;
        }
        log::info!("a stream of a generation cannot go on and is cut");
        (self.disconnect)();
        ctx.stop();
    }

    /// Lets the client read what is queued, as long as it does.
    fn end(&mut self, ctx: &mut Context<Self>) {
        self.has_ended = true;
        self.held = None;
        self.outbox.finish();
        self.wait_for_client(self.outbox.len(), ctx);
    }

    /// Looks after the longest allowed stall whether the client has taken anything.
    fn wait_for_client(&mut self, waiting: usize, ctx: &mut Context<Self>) {
        ctx.run_later(self.settings.config.subscriber_stall, move |actor, ctx| {
            let left = actor.outbox.len();
            if left == 0 {
                ctx.stop();
            } else if left == waiting {
                actor.break_off(ctx);
            } else {
                actor.wait_for_client(left, ctx);
            }
        });
    }

    /// Looks after the longest allowed stall whether a client that is behind takes anything.
    fn watch(&mut self, ctx: &mut Context<Self>) {
        if self.is_watching {
            return;
        }
        self.is_watching = true;
        let stall_max = self.settings.config.subscriber_stall;
        let stall = self.outbox.stalled_for().unwrap_or_default();
        ctx.run_later(stall_max.saturating_sub(stall), move |actor, ctx| {
            actor.is_watching = false;
            if actor.outbox.stalled_for().is_some_and(|stall| stall >= stall_max) {
                actor.break_off(ctx);
            } else if actor.outbox.is_filling() && !actor.has_ended {
                actor.watch(ctx);
            }
        });
    }

    /// Ends early, and says so.
    fn give_up(&mut self, why: &str, kind: FailureKind, ctx: &mut Context<Self>) {
        if !self.has_ended {
            self.pass_on(&[GenerationEvent::Error { message: why.to_owned(), kind }], ctx);
        }
    }

    /// The framework hears of a client that has left only when it writes.
    fn look(&mut self, ctx: &mut Context<Self>) {
        if self.client.has_left() {
            log::debug!("a client has left the stream of its generation");
            (self.disconnect)();
            ctx.stop();
        } else if !ctx.connected() && self.is_alone {
            self.give_up("the generation was lost", FailureKind::Server, ctx);
        }
        self.is_alone = !ctx.connected();
    }

    fn beat(&mut self, _: &mut Context<Self>) {
        if self.stream.is_events() && !self.has_ended && self.outbox.is_empty() {
            self.outbox.push(Bytes::from_static(b": keep-alive\n\n"), NO_EVENT);
        }
    }
}

impl Actor for GenerationReader {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.settings.config.heartbeat, Self::beat);
        ctx.run_interval(WATCH_INTERVAL, Self::look);
        let shutdown = self.settings.shutdown.clone();
        let fired = async move { shutdown.fired().await };
        ctx.spawn(fired.into_actor(self).map(|(), actor, ctx| {
            actor.give_up("the server is shutting down", FailureKind::Draining, ctx);
        }));
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.held = None;
        self.outbox.finish();
    }
}

impl Handler<GenerationProgress> for GenerationReader {
    /// There is room for more: the generation waits for that where its client is slower.
    type Result = ResponseFuture<()>;

    fn handle(
        &mut self,
        GenerationProgress(events): GenerationProgress,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        if !self.outbox.has_reader() {
            ctx.stop();
        } else if !self.has_ended {
            self.pass_on(&events, ctx);
        }
        if !self.outbox.is_filling() {
            return Box::pin(std::future::ready(()));
        }
        self.watch(ctx);
        let outbox = self.outbox.clone();
        Box::pin(async move { outbox.room().await })
    }
}

/// Says that the answer begins, and hands over what is to be dropped with the reader.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Hold(pub(super) Box<dyn Any + Send>);

impl Handler<Hold> for GenerationReader {
    type Result = ();

    fn handle(&mut self, Hold(held): Hold, ctx: &mut Self::Context) {
        self.has_begun = true;
        if !self.has_ended {
            self.held = Some(held);
        } else if !self.outbox.is_finished() {
            self.break_off(ctx);
        }
    }
}

/// Tells a reader that its connection has gone.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ReaderLeft;

impl Handler<ReaderLeft> for GenerationReader {
    type Result = ();

    fn handle(&mut self, _: ReaderLeft, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

#[cfg(test)]
mod tests;
