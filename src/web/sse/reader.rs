//! The actor that reads one execution's events for one connection.

use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, WrapFuture,
};
use actix_web::web::Bytes;
use futures_util::future::LocalBoxFuture;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::requests::{Cut, EventBatch, EventsRecorded, Unavailable};
use greenroom_actors::runtime::Subscription;

use crate::api::wire::event::{count_events, is_end, last_seq_of, render_sse};
use crate::web::outbox::{Outbox, Weight};
use crate::web::server::Settings;

/// Batches that may wait while the worker is busy. What does not fit is read from the record.
const READER_MAILBOX: usize = 256;
/// Reads a page of an execution's facts, those above a number.
pub(super) type Record = Rc<dyn Fn(ExecutionId, u64) -> LocalBoxFuture<'static, Page>>;

/// Facts, oldest first.
pub(super) type Page = Result<Vec<Recorded>, Unavailable>;

/// Comments carry no event: they take no room.
const NO_EVENT: Weight = Weight { events: 0, bytes: 0 };

/// Reads one execution for one connection: from the record first where asked to, then live.
///
/// While it reads the record, a live batch only moves the mark up to which it reads. So nothing
/// is buffered, and at the moment of the change to live there is neither gap nor repeat.
pub(super) struct EventReader {
    record: Record,
    settings: Arc<Settings>,
    outbox: Outbox<Bytes>,
    cut: Cut,
    /// Number of the last event passed on.
    after: u64,
    mode: Mode,
    is_watching: bool,
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the first event, which it will hear of.
    Live,
    /// Where [`ReadFrom`] says.
    WhenTold,
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
        execution: ExecutionId,
        /// The next page holds the facts above this number.
        above: u64,
        upto: u64,
        ended: bool,
    },
}

impl EventReader {
    pub(super) fn new(
        record: Record,
        settings: Arc<Settings>,
        outbox: Outbox<Bytes>,
        cut: Cut,
        begin: Begin,
    ) -> Self {
        let mode = match begin {
            Begin::Live => Mode::Live,
            Begin::WhenTold => Mode::Waiting { upto: 0, ended: false },
        };
        Self { record, settings, outbox, cut, after: 0, mode, is_watching: false }
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
            let execution = batch.execution_id.clone();
            self.mode = Mode::Recorded { execution, above: after, upto: last, ended: false };
            self.read_page(ctx);
            return;
        }
        if last > after {
            let bytes = if first > after { shared(batch) } else { own(batch, after) };
            let weight = Weight { events: count_events(facts, after), bytes: bytes.len() };
            if !self.outbox.push(bytes, weight) {
                self.watch(ctx);
            }
            self.after = last;
        }
        if is_end(facts) {
            self.finish(ctx);
        }
    }

    fn read_page(&mut self, ctx: &mut Context<Self>) {
        let Mode::Recorded { execution, above, upto, ended } = &self.mode else { return };
        if self.after >= *upto {
            if *ended {
                self.finish(ctx);
            } else {
                self.mode = Mode::Live;
            }
            return;
        }
        let (record, outbox) = (Rc::clone(&self.record), self.outbox.clone());
        let (execution, above) = (execution.clone(), *above);
        let reading = async move {
            outbox.room().await;
            record(execution, above).await
        };
        ctx.spawn(reading.into_actor(self).map(|page, actor, ctx| actor.pass_on_page(page, ctx)));
        self.watch(ctx);
    }

    fn pass_on_page(&mut self, page: Result<Vec<Recorded>, Unavailable>, ctx: &mut Context<Self>) {
        let Mode::Recorded { execution, above, upto, .. } = &mut self.mode else { return };
        let facts = match page {
            Ok(facts) => facts,
            Err(error) => {
                log::warn!("events of execution {execution} cannot be read: {error}");
                self.outbox.push_anyway(comment("the record cannot be read"), NO_EVENT);
                self.finish(ctx);
                return;
            }
        };
        let rendered = render_sse(execution, &facts, self.after);
        match last_seq_of(&facts).filter(|last| *last > self.after) {
            Some(last) => (self.after, *above) = (last, last),
            // The record holds no more than this: what is missing comes live.
            None => *upto = self.after,
        }
        if rendered.events > 0 {
            let weight = Weight { events: rendered.events, bytes: rendered.bytes.len() };
            self.outbox.push_anyway(Bytes::from(rendered.bytes), weight);
        }
        if is_end(&facts) {
            self.finish(ctx);
        } else {
            self.read_page(ctx);
        }
    }

    /// Looks again after the longest allowed stall, as long as there is one.
    fn watch(&mut self, ctx: &mut Context<Self>) {
        if self.is_watching {
            return;
        }
        self.is_watching = true;
        let stall_max = self.settings.config.subscriber_stall;
        ctx.run_later(stall_max, move |actor, ctx| {
            actor.is_watching = false;
            match actor.outbox.stalled_for() {
                Some(stall) if stall >= stall_max => {
                    log::info!("a reader of events took nothing for {stall:?} and is cut");
                    (actor.cut)();
                    ctx.stop();
                }
                Some(_) => actor.watch(ctx),
                None if matches!(actor.mode, Mode::Recorded { .. }) => actor.watch(ctx),
                None => {}
            }
        });
    }

    fn finish(&mut self, ctx: &mut Context<Self>) {
        self.outbox.finish();
        ctx.stop();
    }

    fn beat(&mut self, ctx: &mut Context<Self>) {
        if !ctx.connected() && matches!(self.mode, Mode::Live) {
            // The execution's actor has forgotten this reader: nothing more can come.
            self.finish(ctx);
        } else if self.outbox.is_empty() {
            self.outbox.push(comment("keep-alive"), NO_EVENT);
        }
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
            actor.outbox.push_anyway(comment("the server is shutting down"), NO_EVENT);
            actor.finish(ctx);
        }));
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.outbox.finish();
    }
}

impl Handler<EventsRecorded> for EventReader {
    type Result = ();

    fn handle(&mut self, EventsRecorded(batch): EventsRecorded, ctx: &mut Self::Context) {
        if !self.outbox.has_reader() {
            ctx.stop();
            return;
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
        let Subscription { durable_seq, ended } = subscription;
        let (heard_of, heard_end) = match self.mode {
            Mode::Waiting { upto, ended } => (upto, ended),
            Mode::Live | Mode::Recorded { .. } => (0, false),
        };
        self.after = after;
        let (upto, ended) = (durable_seq.max(heard_of), ended || heard_end);
        // One less: the last event seen may have been the first of its fact's two.
        let above = after.saturating_sub(1);
        self.mode = Mode::Recorded { execution, above, upto, ended };
        self.read_page(ctx);
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
