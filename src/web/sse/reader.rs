//! The actor that reads one execution's events for one connection.

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
use greenroom_actors::ports::store::{Place, Portion};
use greenroom_actors::requests::{
    DescribeError, EventBatch, EventsRecorded, StepProgressed, Subscriber, Unavailable,
};
use greenroom_actors::runtime::Subscription;

use crate::api::wire::event::{count_events, is_end, last_seq_of, render_progress, render_sse};
use crate::web::backlog::Held;
use crate::web::outbox::{Offered, Outbox, Weight};
use crate::web::peer::Room;
use crate::web::settings::Settings;

/// Batches that may wait while the worker is busy. What does not fit is read from the record.
const READER_MAILBOX: usize = 256;
/// Comments carry no event: they take no room.
const NO_EVENT: Weight = Weight { events: 0, bytes: 0 };

/// Bytes of facts that are read from the record at once: the least, and the most for a reader that
/// has taken many. One that has never taken anything holds no more than the least.
const PORTION_BYTES: RangeInclusive<usize> = 16 * 1024..=256 * 1024;
/// The part of what a reader has taken that it gets at once.
const PORTION_SHARE: usize = 8;

/// What a reader asks for beside what it is told.
pub(super) trait Record {
    /// A part of an execution's facts from a place on, about so many bytes of them.
    fn portion(
        &self,
        execution: ExecutionId,
        from: Place,
        bytes: usize,
    ) -> LocalBoxFuture<'static, Result<Portion, Unavailable>>;

    /// Has an execution tell a subscriber of what it records from now on.
    fn subscribe(
        &self,
        execution: ExecutionId,
        subscriber: Subscriber,
    ) -> LocalBoxFuture<'static, Result<Subscription, DescribeError>>;
}

/// Reads one execution for one connection: from the record first where asked to, then live.
///
/// While it reads the record, a live batch only moves the mark up to which it reads, and the next
/// portion is read when the one before has left. So nothing is buffered, and at the moment of the
/// change to live there is neither gap nor repeat.
pub(super) struct EventReader {
    record: Rc<dyn Record>,
    settings: Arc<Settings>,
    line: Line,
    /// Known once it was told, or has heard of an event.
    execution: Option<ExecutionId>,
    /// Number of the last event passed on.
    after: u64,
    /// Bytes of the record that were passed on.
    taken: usize,
    mode: Mode,
    is_watching: bool,
}

/// The way to the client.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) outbox: Outbox<Bytes>,
    pub(super) disconnect: Disconnect,
    /// Whether the connection takes in what is written to it.
    pub(super) room: Room,
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the first event, which it will hear of.
    Live,
    /// Where [`ReadFrom`] says.
    WhenTold,
}

/// How much of the record is read next.
#[derive(Debug, Clone, Copy)]
struct Ask {
    /// About so many bytes of facts.
    bytes: usize,
    /// What that was found to take as events, where it is more than one may hold.
    room: Option<usize>,
}

#[derive(Debug)]
enum Mode {
    Live,
    /// Does not know yet where to begin. Keeps the mark of what it has heard of.
    Waiting {
        upto: u64,
        ended: bool,
    },
    /// Reads the record up to `upto`; `ended`: nothing can come after that.
    Recorded {
        from: Place,
        upto: u64,
        ended: bool,
    },
}

impl EventReader {
    pub(super) fn new(
        record: Rc<dyn Record>,
        settings: Arc<Settings>,
        line: Line,
        begin: Begin,
    ) -> Self {
        let mode = match begin {
            Begin::Live => Mode::Live,
            Begin::WhenTold => Mode::Waiting { upto: 0, ended: false },
        };
        let (execution, after, taken, is_watching) = (None, 0, 0, false);
        Self { record, settings, line, execution, after, taken, mode, is_watching }
    }

    /// Starts the reader on this thread.
    pub(super) fn launch(self) -> Addr<Self> {
        Self::create(|ctx| {
            ctx.set_mailbox_capacity(READER_MAILBOX);
            self
        })
    }

    fn pass_on(&mut self, batch: &EventBatch, ctx: &mut Context<Self>) {
        let (facts, after) = (&batch.facts, self.after);
        let Some((first, last)) = facts.first().map(|fact| fact.seq).zip(last_seq_of(facts)) else {
            return;
        };
        if first > after + 1 {
            // A batch found no room in the mailbox: the record has it.
            self.read_from_record(last, is_end(facts), ctx);
            return;
        }
        if last > after {
            let bytes = if first > after { shared(batch) } else { own(batch, after) };
            match self.line.outbox.offer(bytes, count_events(facts, after)) {
                Offered::Taken => {}
                Offered::Missed => self.watch(ctx),
                Offered::BeyondShare => {
                    // Others hold too much for this one to be behind as well: the record has it.
                    self.read_from_record(last, is_end(facts), ctx);
                    return;
                }
            }
            self.after = last;
        }
        if is_end(facts) {
            self.finish(ctx);
        }
    }

    /// Goes on from the last event passed on, up to a mark.
    fn read_from_record(&mut self, upto: u64, ended: bool, ctx: &mut Context<Self>) {
        self.mode = Mode::Recorded { from: Place::above(self.after), upto, ended };
        self.read_on(ctx);
    }

    fn read_on(&mut self, ctx: &mut Context<Self>) {
        let Mode::Recorded { upto, ended, .. } = self.mode else { return };
        if self.after < upto {
            self.fetch(Ask { bytes: self.portion_bytes(), room: None }, ctx);
        } else if ended {
            self.finish(ctx);
        } else {
            self.mode = Mode::Live;
        }
    }

    /// Reads the next portion when the one before has left.
    fn fetch(&mut self, ask: Ask, ctx: &mut Context<Self>) {
        let Mode::Recorded { from, .. } = self.mode else { return };
        let Some(execution) = self.execution.clone() else { return };
        let (record, line) = (Rc::clone(&self.record), self.line.clone());
        let reading = async move {
            line.outbox.drained(&line.room).await;
            let room = match ask.room {
                Some(bytes) => Some(line.outbox.room_of_all(bytes).await),
                None => None,
            };
            (record.portion(execution, from, ask.bytes).await, room)
        };
        ctx.spawn(reading.into_actor(self).map(move |(read, room), actor, ctx| {
            actor.pass_on_read(ask, read, room, ctx);
        }));
        self.watch(ctx);
    }

    fn portion_bytes(&self) -> usize {
        let (least, most) = PORTION_BYTES.into_inner();
        let bytes = (self.taken / PORTION_SHARE).clamp(least, most);
        // As events, facts take more bytes than they are stored in.
        let share = (self.line.outbox.share() / 2).max(least);
        bytes.min(share).min(self.settings.config.subscriber_queue_bytes)
    }

    fn least_portion(&self) -> usize {
        (*PORTION_BYTES.start()).min(self.settings.config.subscriber_queue_bytes)
    }

    fn pass_on_read(
        &mut self,
        ask: Ask,
        read: Result<Portion, Unavailable>,
        room: Option<Held>,
        ctx: &mut Context<Self>,
    ) {
        let Mode::Recorded { from, upto, .. } = &mut self.mode else { return };
        let Some(execution) = &self.execution else { return };
        let Portion { facts, next } = match read {
            Ok(portion) => portion,
            Err(error) => {
                log::warn!("events of execution {execution} cannot be read: {error}");
                self.give_up("the record cannot be read", ctx);
                return;
            }
        };
        let rendered = render_sse(execution, &facts, self.after);
        let length = rendered.bytes.len();
        if rendered.events > 0 {
            let bytes = Bytes::from(rendered.bytes);
            if self.line.outbox.pass_on(bytes, rendered.events, room) != Offered::Taken {
                // What has no room is not kept. Less of it may have, or room is waited for.
                let least = self.least_portion();
                let room = (ask.bytes <= least).then_some(length);
                self.fetch(Ask { bytes: least, room }, ctx);
                return;
            }
            self.taken += length;
        }
        match last_seq_of(&facts).filter(|last| *last > self.after) {
            Some(last) => (self.after, *from) = (last, next),
            // The record holds no more than this: what is missing comes live.
            None => *upto = self.after,
        }
        if is_end(&facts) {
            self.finish(ctx);
        } else {
            self.read_on(ctx);
        }
    }

    /// Looks again when the longest allowed stall would be over, as long as there may be one.
    fn watch(&mut self, ctx: &mut Context<Self>) {
        if self.is_watching {
            return;
        }
        self.is_watching = true;
        let stall_max = self.settings.config.subscriber_stall;
        let stall = self.line.outbox.stalled_for().unwrap_or_default();
        ctx.run_later(stall_max.saturating_sub(stall), move |actor, ctx| {
            actor.is_watching = false;
            match actor.line.outbox.stalled_for() {
                Some(stall) if stall >= stall_max => {
                    log::info!("a reader of events took nothing for {stall:?} and is cut");
                    (actor.line.disconnect)();
                    ctx.stop();
                }
                Some(_) => actor.watch(ctx),
                None if matches!(actor.mode, Mode::Recorded { .. }) => actor.watch(ctx),
                None => {}
            }
        });
    }

    /// Goes on from the last event passed on: up to the mark from the record, then live.
    fn begin(&mut self, execution: ExecutionId, subscription: Subscription) -> Mode {
        let Subscription { durable_seq, ended } = subscription;
        let (heard_of, heard_end) = match self.mode {
            Mode::Waiting { upto, ended } => (upto, ended),
            Mode::Live | Mode::Recorded { .. } => (0, false),
        };
        self.execution = Some(execution);
        // One less: the last event seen may have been the first of its fact's two.
        let from = Place::above(self.after.saturating_sub(1));
        Mode::Recorded { from, upto: durable_seq.max(heard_of), ended: ended || heard_end }
    }

    /// Subscribes anew: whoever told this reader of events has forgotten it. The last batch may
    /// have found no room here, or the execution's actor was lost.
    fn subscribe_again(&mut self, ctx: &mut Context<Self>) {
        let Some(execution) = self.execution.clone() else {
            // It has heard of nothing: the start was never recorded.
            self.finish(ctx);
            return;
        };
        self.mode = Mode::Waiting { upto: 0, ended: false };
        let subscriber = subscriber_at(&ctx.address(), &self.line.disconnect);
        let subscribing = self.record.subscribe(execution.clone(), subscriber);
        ctx.spawn(subscribing.into_actor(self).map(|subscribed, actor, ctx| match subscribed {
            Ok(subscription) => {
                actor.mode = actor.begin(execution, subscription);
                actor.read_on(ctx);
            }
            Err(error) => {
                log::debug!("execution {execution} takes its reader no more: {error}");
                actor.give_up("the execution cannot be followed", ctx);
            }
        }));
    }

    fn finish(&mut self, ctx: &mut Context<Self>) {
        self.line.outbox.finish();
        ctx.stop();
    }

    /// Ends early, and says so: the client comes back for the rest.
    fn give_up(&mut self, why: &str, ctx: &mut Context<Self>) {
        self.line.outbox.push_anyway(comment(why), NO_EVENT);
        self.finish(ctx);
    }

    fn beat(&mut self, ctx: &mut Context<Self>) {
        if !self.line.outbox.has_reader() {
            ctx.stop();
        } else if !ctx.connected() && matches!(self.mode, Mode::Live) {
            self.subscribe_again(ctx);
        } else if self.line.outbox.is_empty() {
            self.line.outbox.push(comment("keep-alive"), NO_EVENT);
        }
    }
}

/// What an execution is told to send its events, and what its agents say, to.
pub(super) fn subscriber_at(reader: &Addr<EventReader>, disconnect: &Disconnect) -> Subscriber {
    Subscriber {
        events: reader.clone().recipient(),
        progress: Some(reader.clone().recipient()),
        disconnect: Arc::clone(disconnect),
    }
}

/// The batch in its wire form, rendered once for all its readers.
fn shared(batch: &EventBatch) -> Bytes {
    let render = || Arc::from(render_sse(&batch.execution_id, &batch.facts, 0).bytes);
    Bytes::from_owner(Arc::clone(batch.rendered.get_or_init(render)))
}

/// The part of a batch that this reader has not seen.
fn own(batch: &EventBatch, after: u64) -> Bytes {
    Bytes::from(render_sse(&batch.execution_id, &batch.facts, after).bytes)
}

fn comment(text: &str) -> Bytes {
    Bytes::from(format!(": {text}\n\n"))
}

impl Actor for EventReader {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.settings.config.heartbeat, Self::beat);
        let shutdown = self.settings.shutdown.clone();
        let fired = async move { shutdown.fired().await };
        ctx.spawn(fired.into_actor(self).map(|(), actor, ctx| {
            actor.give_up("the server is shutting down", ctx);
        }));
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.line.outbox.finish();
    }
}

impl Handler<EventsRecorded> for EventReader {
    type Result = ();

    fn handle(&mut self, EventsRecorded(batch): EventsRecorded, ctx: &mut Self::Context) {
        if !self.line.outbox.has_reader() {
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

impl Handler<StepProgressed> for EventReader {
    type Result = ();

    /// Passes progress on while there is plenty of room. Who still reads the record is not there
    /// yet, and who is slow has enough to do with what was recorded.
    fn handle(&mut self, StepProgressed(batch): StepProgressed, _: &mut Self::Context) {
        if matches!(self.mode, Mode::Live) {
            let bytes = batch.rendered.get_or_init(|| Arc::from(render_progress(&batch)));
            let weight = Weight { events: batch.events().count(), bytes: bytes.len() };
            self.line.outbox.push_if_roomy(Bytes::from_owner(Arc::clone(bytes)), weight);
        }
    }
}

/// Tells a reader where to begin.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ReadFrom {
    pub(super) execution: ExecutionId,
    pub(super) after: u64,
    pub(super) subscription: Subscription,
}

impl Handler<ReadFrom> for EventReader {
    type Result = ();

    fn handle(&mut self, command: ReadFrom, ctx: &mut Self::Context) {
        let ReadFrom { execution, after, subscription } = command;
        self.after = after;
        self.mode = self.begin(execution, subscription);
        self.read_on(ctx);
    }
}

/// Tells a reader that its connection has gone.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ReaderLeft;

impl Handler<ReaderLeft> for EventReader {
    type Result = ();

    fn handle(&mut self, _: ReaderLeft, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

#[cfg(test)]
mod tests;
