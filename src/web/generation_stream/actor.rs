//! The actor that follows one generation for one connection.

use std::any::Any;
use std::sync::Arc;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message, ResponseFuture};
use actix_web::web::Bytes;
use greenroom_actors::agent::generation::{FailureKind, GenerationEvent, GenerationProgress};
use greenroom_actors::observe::disconnect::Disconnect;

use crate::api::wire::generation_stream::GenerationStream;
use crate::web::heartbeat::{Heartbeat, Reading};
use crate::web::peer::{WATCH_INTERVAL, Watch};
use crate::web::pending_stream::{ClientLeft, launch};
use crate::web::settings::Settings;
use crate::web::shutdown::SHUTTING_DOWN;
use crate::web::subscriber_queue::{SubscriberQueue, Weight};

/// Mailbox capacity, in batches, for while the worker is busy. A batch that does not fit ends the
/// stream.
const STREAM_MAILBOX: usize = 1024;
/// Size of the pieces in the queue. A slow client has to take one to count as reading.
const PIECE_BYTES: usize = 64 * 1024;

/// Reason for a disconnect, as logged.
const STALLED: &str = "it read nothing for too long";

/// Subscriber of one generation for one connection.
pub(crate) struct GenerationStreamActor {
    stream: GenerationStream,
    settings: Arc<Settings>,
    queue: SubscriberQueue<Bytes>,
    disconnect: Disconnect,
    client: Watch,
    /// Keeps the generation running, unless something else does.
    held: Option<Box<dyn Any + Send>>,
    /// True if no sender of events was left at the last check.
    is_alone: bool,
    /// True once the answer has begun; until then a refusal may still be sent instead.
    has_begun: bool,
    /// True if no more events follow. Queued ones are still to be read.
    has_ended: bool,
    heartbeat: Heartbeat,
}

impl GenerationStreamActor {
    pub(super) fn new(
        stream: GenerationStream,
        settings: Arc<Settings>,
        queue: SubscriberQueue<Bytes>,
        disconnect: Disconnect,
        client: Watch,
    ) -> Self {
        let heartbeat = Heartbeat::of(&settings.config);
        Self {
            stream,
            settings,
            queue,
            disconnect,
            client,
            held: None,
            is_alone: false,
            has_begun: false,
            has_ended: false,
            heartbeat,
        }
    }

    /// Starts the actor on this thread.
    pub(super) fn launch(self) -> Addr<Self> {
        launch(self, STREAM_MAILBOX)
    }

    /// Queues events for the client. If one cannot be encoded or queued, the connection ends.
    fn pass_on(&mut self, events: &[GenerationEvent], ctx: &mut Context<Self>) {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for event in events {
            let is_behind = self.queue.is_filling();
            let written = self.stream.write(event, is_behind, &mut bytes);
            count += 1;
            let is_last = event.is_last();
            let is_due = is_last || bytes.len() >= PIECE_BYTES;
            let is_taken = !is_due || self.push(std::mem::take(&mut bytes), count);
            if !is_taken {
                self.break_off("its queue is full", ctx);
                return;
            }
            if written.is_err() {
                self.break_off("its plain text cannot report that the generation failed", ctx);
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
            self.break_off("its queue is full", ctx);
        }
    }

    /// Queues bytes in pieces; returns whether all of them fit.
    fn push(&self, bytes: Vec<u8>, events: usize) -> bool {
        let (mut rest, mut events) = (Bytes::from(bytes), events);
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            let weight = Weight { events: std::mem::take(&mut events), bytes: piece.len() };
            if !self.queue.push(piece, weight) {
                return false;
            }
        }
        true
    }

    /// Disconnects the client: events of a generation cannot be read again, so after a gap the rest
    /// is worthless. Before the answer has begun, the connection is left to the refusal.
    fn break_off(&mut self, why: &str, ctx: &mut Context<Self>) {
        if !self.has_begun {
            self.has_ended = true;
            return;
        }
        log::info!("disconnected the subscriber of a generation: {why}");
        (self.disconnect)();
        ctx.stop();
    }

    /// Ends the stream after the queued bytes, which the client may take its time to read.
    fn end(&mut self, ctx: &mut Context<Self>) {
        self.has_ended = true;
        self.held = None;
        self.queue.finish();
        self.wait_for_client(self.queue.len(), ctx);
    }

    /// Disconnects the client if it takes nothing for `subscriber_stall`.
    fn wait_for_client(&mut self, waiting: usize, ctx: &mut Context<Self>) {
        ctx.run_later(self.heartbeat.stall_max(), move |actor, ctx| {
            let left = actor.queue.len();
            if left == 0 {
                ctx.stop();
            } else if left == waiting {
                actor.break_off(STALLED, ctx);
            } else {
                actor.wait_for_client(left, ctx);
            }
        });
    }

    /// Checks after `subscriber_stall` whether a client that is behind has taken anything.
    fn watch(&mut self, ctx: &mut Context<Self>) {
        let Some(pause) = self.heartbeat.begin_check(&self.queue) else { return };
        ctx.run_later(pause, |actor, ctx| match actor.heartbeat.check(&actor.queue) {
            Reading::Stalled(_) => actor.break_off(STALLED, ctx),
            Reading::Behind | Reading::Current => {
                if actor.queue.is_filling() && !actor.has_ended {
                    actor.watch(ctx);
                }
            }
        });
    }

    /// Ends the stream early with an error event.
    fn give_up(&mut self, why: &str, kind: FailureKind, ctx: &mut Context<Self>) {
        if !self.has_ended {
            self.pass_on(&[GenerationEvent::Error { message: why.to_owned(), kind }], ctx);
        }
    }

    /// Checks whether the client and the generation are still there. actix-web notices a client
    /// that has disconnected only when it writes.
    fn check(&mut self, ctx: &mut Context<Self>) {
        if self.client.has_left() {
            log::debug!("a client disconnected from the stream of its generation");
            (self.disconnect)();
            ctx.stop();
        } else if !ctx.connected() && self.is_alone {
            self.give_up("the generation was lost", FailureKind::Server, ctx);
        }
        self.is_alone = !ctx.connected();
    }

    fn beat(&mut self, _: &mut Context<Self>) {
        if self.stream.is_events() && !self.has_ended {
            Heartbeat::beat(&self.queue);
        }
    }
}

impl Actor for GenerationStreamActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.heartbeat.interval(), Self::beat);
        ctx.run_interval(WATCH_INTERVAL, Self::check);
        self.settings.shutdown.notify(ctx, |actor: &mut Self, ctx| {
            actor.give_up(SHUTTING_DOWN, FailureKind::Draining, ctx);
        });
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.held = None;
        self.queue.finish();
    }
}

impl Handler<GenerationProgress> for GenerationStreamActor {
    /// Resolves once there is room for more: the generation waits for it if its client is slower.
    type Result = ResponseFuture<()>;

    fn handle(
        &mut self,
        GenerationProgress(events): GenerationProgress,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        if !self.queue.has_receiver() {
            ctx.stop();
        } else if !self.has_ended {
            self.pass_on(&events, ctx);
        }
        if !self.queue.is_filling() {
            return Box::pin(std::future::ready(()));
        }
        self.watch(ctx);
        let queue = self.queue.clone();
        Box::pin(async move { queue.room().await })
    }
}

/// Reports that the answer begins, and passes the value to drop when the stream ends.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Hold(pub(crate) Box<dyn Any + Send>);

impl Handler<Hold> for GenerationStreamActor {
    type Result = ();

    fn handle(&mut self, Hold(held): Hold, ctx: &mut Self::Context) {
        self.has_begun = true;
        if !self.has_ended {
            self.held = Some(held);
        } else if !self.queue.is_finished() {
            self.break_off("its stream failed before the answer began", ctx);
        }
    }
}

impl Handler<ClientLeft> for GenerationStreamActor {
    type Result = ();

    fn handle(&mut self, _: ClientLeft, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

#[cfg(test)]
mod tests;
