//! Facts of executions and events of generations of this process, for readers at other members.

use std::sync::Arc;

use actix::fut::ActorFutureExt as _;
use actix::{Actor, ActorContext, Addr, ArbiterHandle, AsyncContext, Context, Handler, WrapFuture};
use futures_util::stream::{BoxStream, StreamExt as _, iter, unfold};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::agent::event::{GenerationEvent, GenerationProgress, GenerationSubscriber};
use crate::cluster::said::{write_events, write_facts, write_progress};
use crate::observe::forgotten::Forgotten;
use crate::requests::{EventBatch, EventsRecorded, ProgressBatch, StepProgressed, Subscriber};

/// Batches that wait for the link.
const QUEUED_MAX: usize = 256;

/// Subscriber that passes batches on. It ends with its subject or with its reader.
struct Relay<B> {
    out: mpsc::Sender<B>,
}

/// A batch about an execution.
pub(super) enum OfExecution {
    Facts(Arc<EventBatch>),
    Progress(Arc<ProgressBatch>),
}

/// Batches that a relay passes on.
pub(super) struct Relayed<B>(mpsc::Receiver<B>);

/// Facts of an execution, and progress of its steps.
pub(super) type Facts = Relayed<OfExecution>;
/// Events of a generation.
pub(super) type Events = Relayed<Arc<[GenerationEvent]>>;

impl<B: Send + 'static> Relayed<B> {
    /// Returns the batches as messages of an exchange.
    fn messages_of<M>(self, write: impl Fn(B) -> M + Send + 'static) -> BoxStream<'static, Vec<u8>>
    where
        M: IntoIterator<Item = Vec<u8>, IntoIter: Send> + Send + 'static,
    {
        let next = async |mut relayed: Self| Some((relayed.0.recv().await?, relayed));
        unfold(self, next).flat_map(move |batch| iter(write(batch))).boxed()
    }
}

impl Facts {
    pub(super) fn messages(self) -> BoxStream<'static, Vec<u8>> {
        self.messages_of(|batch| match batch {
            OfExecution::Facts(batch) => [write_facts(&batch.facts)],
            OfExecution::Progress(batch) => [write_progress(&batch)],
        })
    }
}

impl Events {
    pub(super) fn messages(self) -> BoxStream<'static, Vec<u8>> {
        self.messages_of(|events| write_events(&events))
    }
}

/// Starts a relay of facts on a thread, and of progress if it is wanted; returns it as a subscriber.
pub(super) fn relay_facts(arbiter: &ArbiterHandle, wants_progress: bool) -> (Subscriber, Facts) {
    let (relay, facts) = start(arbiter);
    let progress = wants_progress.then(|| relay.clone().recipient());
    // an unread exchange ends by itself: this process has no connection to close
    let subscriber =
        Subscriber { events: relay.recipient(), progress, disconnect: Arc::new(|| {}) };
    (subscriber, facts)
}

/// Starts a relay of events on a thread; returns it as a subscriber. The events end without the last
/// one if the reader falls behind, since a gap could not be filled.
pub(super) fn relay_events(arbiter: &ArbiterHandle) -> (GenerationSubscriber, Events) {
    let (relay, events) = start(arbiter);
    // dropped by its generation, the relay ends, and its exchange with it
    let subscriber =
        GenerationSubscriber { events: relay.recipient(), disconnect: Arc::new(|| {}) };
    (subscriber, events)
}

fn start<B: Unpin + Send + 'static>(arbiter: &ArbiterHandle) -> (Addr<Relay<B>>, Relayed<B>) {
    let (out, batches) = mpsc::channel(QUEUED_MAX);
    (Relay::start_in_arbiter(arbiter, |_| Relay { out }), Relayed(batches))
}

impl<B: Unpin + Send + 'static> Actor for Relay<B> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(QUEUED_MAX);
        end_with(self, self.out.clone(), ctx);
    }
}

/// Ends a relay with the reader of its batches, and when nothing sends to it.
pub(super) fn end_with<A: Actor<Context = Context<A>>, B: 'static>(
    relay: &A,
    out: mpsc::Sender<B>,
    ctx: &mut Context<A>,
) {
    let left = async move { out.closed().await };
    ctx.spawn(left.into_actor(relay).map(|(), _, ctx| ctx.stop()));
    ctx.spawn(Forgotten::default().map(|(), _: &mut A, ctx| ctx.stop()));
}

impl Handler<EventsRecorded> for Relay<OfExecution> {
    type Result = ();

    fn handle(&mut self, EventsRecorded(batch): EventsRecorded, ctx: &mut Self::Context) {
        // without room it is dropped: the reader notices the gap, and reads the record
        if let Err(TrySendError::Closed(_)) = self.out.try_send(OfExecution::Facts(batch)) {
            ctx.stop();
        }
    }
}

impl Handler<StepProgressed> for Relay<OfExecution> {
    type Result = ();

    fn handle(&mut self, StepProgressed(batch): StepProgressed, _: &mut Self::Context) {
        // leaves room for facts; closed: the actor is about to stop
        if self.out.capacity() > QUEUED_MAX / 2 {
            let _ = self.out.try_send(OfExecution::Progress(batch));
        }
    }
}

impl Handler<GenerationProgress> for Relay<Arc<[GenerationEvent]>> {
    type Result = ();

    fn handle(&mut self, progress: GenerationProgress, ctx: &mut Self::Context) {
        let GenerationProgress(events) = progress;
        if self.out.try_send(events).is_err() {
            ctx.stop();
        }
    }
}
