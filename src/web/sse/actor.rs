//! The actor behind one stream of an execution's events.

mod subscribing;

use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, WrapFuture,
};
use actix_web::web::Bytes;
use futures_util::future::LocalBoxFuture;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::ports::store::{FactCursor, Portion};
use greenroom_actors::requests::{
    DescribeError, EventBatch, EventsRecorded, StepProgressed, Subscriber, Unavailable,
};
use greenroom_actors::runtime::Subscription;

use crate::api::wire::event::{count_events, is_end, last_seq_of, render_progress, render_sse};
use crate::web::backlog::Held;
use crate::web::heartbeat::{Heartbeat, Reading};
use crate::web::peer::SendBuffer;
use crate::web::pending_stream::{ClientLeft, launch};
use crate::web::settings::Settings;
use crate::web::shutdown::SHUTTING_DOWN;
use crate::web::sse::actor::subscribing::Pauses;
use crate::web::subscriber_queue::{Offered, SubscriberQueue, Weight};

pub(super) use crate::web::sse::actor::subscribing::subscriber_at;

/// Mailbox capacity, in batches, for while the worker is busy. Batches that do not fit are read
/// from the journal.
const STREAM_MAILBOX: usize = 256;

/// Bytes of facts per read from the journal: the minimum, for clients that have read nothing yet,
/// and the maximum, for those that have read much.
const PORTION_BYTES: RangeInclusive<usize> = 16 * 1024..=256 * 1024;
/// Divisor of the bytes a client has read: it gets 1/8 of them per read.
const PORTION_SHARE: usize = 8;

/// Journal and live events of executions.
pub(super) trait EventSource {
    /// Reads about `bytes` bytes of an execution's facts.
    fn portion(
        &self,
        execution: ExecutionId,
        from: FactCursor,
        bytes: usize,
    ) -> LocalBoxFuture<'static, Result<Portion, Unavailable>>;

    /// Subscribes to the facts that an execution records from now on.
    fn subscribe(
        &self,
        execution: ExecutionId,
        subscriber: Subscriber,
    ) -> LocalBoxFuture<'static, Result<Subscription, DescribeError>>;
}

/// Subscriber of one execution for one connection: reads the journal first if asked to, then live
/// events.
///
/// While it reads the journal, a live batch only moves the mark up to which it reads, and the next
/// portion is read when the one before has been sent. So nothing is buffered, and at the change to
/// live events there is neither a gap nor a repeat.
pub(crate) struct EventStreamActor {
    source: Rc<dyn EventSource>,
    settings: Arc<Settings>,
    connection: Connection,
    /// Known from [`ReadFrom`] or the first event.
    execution: Option<ExecutionId>,
    /// Number of the last event passed on.
    after: u64,
    /// Bytes read from the journal and passed on.
    taken: usize,
    mode: Mode,
    heartbeat: Heartbeat,
    /// True while it waits to be forgotten by the execution.
    is_awaiting_loss: bool,
    pauses: Pauses,
}

/// Client side of the stream.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) queue: SubscriberQueue<Bytes>,
    pub(super) disconnect: Disconnect,
    pub(super) send_buffer: SendBuffer,
}

/// First event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The first live event.
    Live,
    /// The event given by [`ReadFrom`].
    AtPosition,
}

/// Size of the next read from the journal.
#[derive(Debug, Clone, Copy)]
struct Fetch {
    /// Approximate bytes of facts.
    bytes: usize,
    /// Bytes to reserve first: the size of these facts as events, if that exceeded the share of
    /// one queue.
    room: Option<usize>,
}

#[derive(Debug)]
enum Mode {
    Live,
    /// Waits for its position. Keeps the mark of the live events so far.
    Waiting {
        upto: u64,
        ended: bool,
    },
    /// Reads the journal up to `upto`; `ended`: no event follows that.
    Recorded {
        from: FactCursor,
        upto: u64,
        ended: bool,
    },
}

impl EventStreamActor {
    pub(super) fn new(
        source: Rc<dyn EventSource>,
        settings: Arc<Settings>,
        connection: Connection,
        begin: Begin,
    ) -> Self {
        let mode = match begin {
            Begin::Live => Mode::Live,
            Begin::AtPosition => Mode::Waiting { upto: 0, ended: false },
        };
        let (execution, after, taken, pauses) = (None, 0, 0, Pauses::default());
        let heartbeat = Heartbeat::of(&settings.config);
        Self {
            source,
            settings,
            connection,
            execution,
            after,
            taken,
            mode,
            heartbeat,
            is_awaiting_loss: false,
            pauses,
        }
    }

    /// Starts the actor on this thread.
    pub(super) fn launch(self) -> Addr<Self> {
        launch(self, STREAM_MAILBOX)
    }

    fn pass_on(&mut self, batch: &EventBatch, ctx: &mut Context<Self>) {
        let (facts, after) = (&batch.facts, self.after);
        let Some((first, last)) = facts.first().map(|fact| fact.seq).zip(last_seq_of(facts)) else {
            return;
        };
        if first > after + 1 {
            // A batch did not fit into the mailbox: the journal has it.
            self.read_journal(last, is_end(facts), ctx);
            return;
        }
        if last > after {
            let bytes = if first > after { shared(batch) } else { own(batch, after) };
            match self.connection.queue.offer(bytes, count_events(facts, after)) {
                Offered::Taken => {}
                Offered::Missed => self.watch(ctx),
                Offered::BeyondShare => {
                    // Other clients hold too much for this one to queue more: the journal has it.
                    self.read_journal(last, is_end(facts), ctx);
                    return;
                }
            }
            self.after = last;
        }
        if is_end(facts) {
            self.finish(ctx);
        }
    }

    /// Reads the journal after the last event passed on, up to a mark.
    fn read_journal(&mut self, upto: u64, ended: bool, ctx: &mut Context<Self>) {
        self.mode = Mode::Recorded { from: FactCursor::above(self.after), upto, ended };
        self.read_on(ctx);
    }

    fn read_on(&mut self, ctx: &mut Context<Self>) {
        let Mode::Recorded { upto, ended, .. } = self.mode else { return };
        if self.after < upto {
            self.fetch(Fetch { bytes: self.portion_bytes(), room: None }, ctx);
        } else if ended {
            self.finish(ctx);
        } else {
            self.mode = Mode::Live;
            self.await_loss(ctx);
        }
    }

    /// Reads the next portion once the previous one has been sent.
    fn fetch(&mut self, fetch: Fetch, ctx: &mut Context<Self>) {
        let Mode::Recorded { from, .. } = self.mode else { return };
        let Some(execution) = self.execution.clone() else { return };
        let (source, connection) = (Rc::clone(&self.source), self.connection.clone());
        let reading = async move {
            connection.queue.drained(&connection.send_buffer).await;
            let room = match fetch.room {
                Some(bytes) => Some(connection.queue.reserve_shared(bytes).await),
                None => None,
            };
            (source.portion(execution, from, fetch.bytes).await, room)
        };
        ctx.spawn(reading.into_actor(self).map(move |(read, room), actor, ctx| {
            actor.pass_on_read(fetch, read, room, ctx);
        }));
        self.watch(ctx);
    }

    fn portion_bytes(&self) -> usize {
        let (least, most) = PORTION_BYTES.into_inner();
        let bytes = (self.taken / PORTION_SHARE).clamp(least, most);
        // Events are larger than the stored facts.
        let share = (self.connection.queue.share() / 2).max(least);
        bytes.min(share).min(self.settings.config.subscriber_queue_bytes)
    }

    fn least_portion(&self) -> usize {
        (*PORTION_BYTES.start()).min(self.settings.config.subscriber_queue_bytes)
    }

    fn pass_on_read(
        &mut self,
        fetch: Fetch,
        read: Result<Portion, Unavailable>,
        room: Option<Held>,
        ctx: &mut Context<Self>,
    ) {
        let Mode::Recorded { from, upto, .. } = &mut self.mode else { return };
        let Some(execution) = &self.execution else { return };
        let Portion { facts, next } = match read {
            Ok(portion) => portion,
            Err(error) => {
                // why it cannot be read is logged where it is read
                log::debug!("ending a stream of execution {execution}: {error}");
                self.give_up("the events cannot be read", ctx);
                return;
            }
        };
        let rendered = render_sse(execution, &facts, self.after);
        let length = rendered.bytes.len();
        if rendered.events > 0 {
            let bytes = Bytes::from(rendered.bytes);
            if self.connection.queue.push_fetched(bytes, rendered.events, room) != Offered::Taken {
                // Dropped, and read again: a smaller portion, or after reserving room for it.
                let least = self.least_portion();
                let room = (fetch.bytes <= least).then_some(length);
                self.fetch(Fetch { bytes: least, room }, ctx);
                return;
            }
            self.taken += length;
        }
        match last_seq_of(&facts).filter(|last| *last > self.after) {
            Some(last) => (self.after, *from) = (last, next),
            // The journal has no more events: the rest arrives live.
            None => *upto = self.after,
        }
        if is_end(&facts) {
            self.finish(ctx);
        } else {
            self.read_on(ctx);
        }
    }

    /// Checks for a stall after `subscriber_stall`, as long as the client may be behind.
    fn watch(&mut self, ctx: &mut Context<Self>) {
        let Some(pause) = self.heartbeat.begin_check(&self.connection.queue) else { return };
        ctx.run_later(pause, |actor, ctx| match actor.heartbeat.check(&actor.connection.queue) {
            Reading::Stalled(stall) => {
                log::info!(
                    "disconnected a subscriber of an execution: it read nothing for {stall:?}"
                );
                (actor.connection.disconnect)();
                ctx.stop();
            }
            Reading::Behind => actor.watch(ctx),
            Reading::Current if matches!(actor.mode, Mode::Recorded { .. }) => actor.watch(ctx),
            Reading::Current => {}
        });
    }

    fn finish(&mut self, ctx: &mut Context<Self>) {
        let Connection { queue, disconnect, .. } = self.connection.clone();
        queue.finish();
        self.heartbeat.watch_end(queue, disconnect);
        ctx.stop();
    }

    /// Ends the stream early with a comment; the client reconnects for the rest.
    fn give_up(&mut self, why: &str, ctx: &mut Context<Self>) {
        self.connection.queue.push_comment(why);
        self.finish(ctx);
    }

    fn beat(&mut self, ctx: &mut Context<Self>) {
        if !self.connection.queue.has_receiver() {
            ctx.stop();
            return;
        }
        if matches!(self.mode, Mode::Live) && ctx.connected() {
            self.pauses.reset();
        }
        Heartbeat::beat(&self.connection.queue);
    }
}

/// Returns the batch in its wire form, rendered once for all its subscribers.
fn shared(batch: &EventBatch) -> Bytes {
    let render = || Arc::from(render_sse(&batch.execution_id, &batch.facts, 0).bytes);
    Bytes::from_owner(Arc::clone(batch.rendered.get_or_init(render)))
}

/// Renders the events of a batch that were not passed on yet.
fn own(batch: &EventBatch, after: u64) -> Bytes {
    Bytes::from(render_sse(&batch.execution_id, &batch.facts, after).bytes)
}

impl Actor for EventStreamActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.heartbeat.interval(), Self::beat);
        self.await_loss(ctx);
        self.settings.shutdown.notify(ctx, |actor: &mut Self, ctx| {
            actor.give_up(SHUTTING_DOWN, ctx);
        });
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.connection.queue.finish();
    }
}

impl Handler<EventsRecorded> for EventStreamActor {
    type Result = ();

    fn handle(&mut self, EventsRecorded(batch): EventsRecorded, ctx: &mut Self::Context) {
        if !self.connection.queue.has_receiver() {
            ctx.stop();
            return;
        }
        if self.execution.is_none() {
            self.execution = Some(batch.execution_id.clone());
        }
        match &mut self.mode {
            Mode::Live => self.pass_on(&batch, ctx),
            Mode::Waiting { upto, ended } | Mode::Recorded { upto, ended, .. } => {
                *upto = (*upto).max(last_seq_of(&batch.facts).unwrap_or(0));
                *ended |= is_end(&batch.facts);
            }
        }
    }
}

impl Handler<StepProgressed> for EventStreamActor {
    type Result = ();

    /// Passes progress on if the queue is at most half full: a slow client should spend its time on
    /// recorded events. A stream that still reads the journal drops it.
    fn handle(&mut self, StepProgressed(batch): StepProgressed, _: &mut Self::Context) {
        if matches!(self.mode, Mode::Live) {
            let bytes = batch.rendered.get_or_init(|| Arc::from(render_progress(&batch)));
            let weight = Weight { events: batch.events().count(), bytes: bytes.len() };
            self.connection.queue.push_if_roomy(Bytes::from_owner(Arc::clone(bytes)), weight);
        }
    }
}

/// Sets the position of a stream.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ReadFrom {
    pub(super) execution: ExecutionId,
    pub(super) after: u64,
    pub(super) subscription: Subscription,
}

impl Handler<ReadFrom> for EventStreamActor {
    type Result = ();

    fn handle(&mut self, command: ReadFrom, ctx: &mut Self::Context) {
        let ReadFrom { execution, after, subscription } = command;
        self.after = after;
        self.mode = self.begin(execution, subscription);
        self.read_on(ctx);
    }
}

impl Handler<ClientLeft> for EventStreamActor {
    type Result = ();

    fn handle(&mut self, _: ClientLeft, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

#[cfg(test)]
mod tests;
