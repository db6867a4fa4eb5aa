//! The actor of one generation: drives its run and receives commands.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use actix::fut::{ActorFutureExt as _, WrapFuture as _};
use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, Message};
use tokio::sync::{oneshot, watch};

use crate::shard::messages::KillForTest;

use super::GenerationSubscriber;
use super::control::{Control, Stop};
use super::generation_registry::GenerationRegistry;
use super::recording::Recording;
use super::run::{Run, Start};
use super::subscribers::Subscribers;

/// Few messages arrive: commands of the handle, and of callers that find the generation by its id
/// or conversation. The latter wait for room.
const MAILBOX_CAPACITY: usize = 16;

/// Stops a generation. No effect once its end is decided.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct CancelGeneration {
    /// Dropped once the end is durable.
    pub(crate) ended: Option<oneshot::Sender<()>>,
}

/// Erases the user of a generation: one for which a step waits continues without the user and the
/// conversation, any other one is cancelled.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ForgetUserOfGeneration {
    /// Dropped once nothing of the user is recorded any longer.
    pub(crate) done: oneshot::Sender<()>,
}

/// Stops a generation because the process is shutting down, or another one is to serve what waits for
/// it.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Interrupt;

/// Pauses a generation: what runs finishes, no further turn begins.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct PauseGeneration;

/// Ends a pause.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct UnpauseGeneration;

/// Adds a subscriber, which gets all events from the first on. Replies with the generation's id, or
/// `None` if it takes no subscriber.
#[derive(Debug, Message)]
#[rtype(result = "Option<Arc<str>>")]
pub(crate) struct SubscribeToGeneration(pub(crate) GenerationSubscriber);

/// One generation.
pub(crate) struct GenerationActor {
    id: Arc<str>,
    /// Taken when the actor starts.
    start: Option<Start>,
    control: watch::Sender<Control>,
    /// Shared with the run.
    subscribers: Rc<RefCell<Subscribers>>,
    /// Dropped with the actor.
    waiting_for_end: Vec<oneshot::Sender<()>>,
    live: Arc<GenerationRegistry>,
    recording: Recording,
    /// True if a step waits for it, or for the generation that has asked for it.
    is_for_step: bool,
}

impl GenerationActor {
    pub(super) fn new(mut start: Start) -> Self {
        Self {
            id: start.id(),
            live: Arc::clone(&start.deps.live),
            recording: start.recording(),
            is_for_step: start.is_for_step(),
            subscribers: Rc::new(RefCell::new(start.subscribers())),
            start: Some(start),
            control: watch::Sender::new(Control::default()),
            waiting_for_end: Vec::new(),
        }
    }

    /// Stops the run; the first reason counts.
    fn stop(&self, why: Stop) {
        self.control.send_if_modified(|control| {
            let is_first = control.stop.is_none();
            control.stop.get_or_insert(why);
            is_first
        });
    }
}

impl Actor for GenerationActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_CAPACITY);
        let Some(start) = self.start.take() else { return };
        let scope = start.scope();
        let control = self.control.subscribe();
        let subscribers = Rc::clone(&self.subscribers);
        let (run, question, answer) = Run::new(start, control, subscribers, ctx.address());
        // on the heap at once: a future is copied into each of its wrappers
        let work = scope.during(Box::pin(run.perform(question)));
        ctx.spawn(work.into_actor(self).map(|outcome, _, ctx| {
            // the caller may be gone
            let _ = answer.send(outcome);
            ctx.stop();
        }));
    }
}

impl Handler<CancelGeneration> for GenerationActor {
    type Result = ();

    fn handle(&mut self, command: CancelGeneration, _: &mut Self::Context) {
        let CancelGeneration { ended } = command;
        // what it is for may have been interrupted first, at the end of the process
        let is_left = ended.is_none() && self.live.is_closed();
        self.waiting_for_end.extend(ended);
        self.stop(if is_left { Stop::Interrupted } else { Stop::Cancelled });
    }
}

impl Handler<ForgetUserOfGeneration> for GenerationActor {
    type Result = ();

    fn handle(&mut self, command: ForgetUserOfGeneration, ctx: &mut Self::Context) {
        let ForgetUserOfGeneration { done } = command;
        if !self.is_for_step {
            self.waiting_for_end.push(done);
            return self.stop(Stop::Cancelled);
        }
        self.control.send_modify(|control| control.forgets_user = true);
        let recording = self.recording.clone();
        let told = async move {
            recording.ended().await;
            drop(done);
        };
        ctx.spawn(told.into_actor(self));
    }
}

impl Handler<Interrupt> for GenerationActor {
    type Result = ();

    fn handle(&mut self, _: Interrupt, _: &mut Self::Context) {
        self.stop(Stop::Interrupted);
    }
}

impl Handler<KillForTest> for GenerationActor {
    type Result = ();

    /// Behaves like the end of the process: records and sends nothing.
    fn handle(&mut self, _: KillForTest, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<PauseGeneration> for GenerationActor {
    type Result = ();

    fn handle(&mut self, _: PauseGeneration, _: &mut Self::Context) {
        self.control.send_modify(|control| control.is_paused = true);
    }
}

impl Handler<UnpauseGeneration> for GenerationActor {
    type Result = ();

    fn handle(&mut self, _: UnpauseGeneration, _: &mut Self::Context) {
        self.control.send_modify(|control| control.is_paused = false);
    }
}

impl Handler<SubscribeToGeneration> for GenerationActor {
    type Result = Option<Arc<str>>;

    fn handle(&mut self, command: SubscribeToGeneration, _: &mut Self::Context) -> Self::Result {
        let SubscribeToGeneration(subscriber) = command;
        self.subscribers.borrow_mut().attach(subscriber).then(|| Arc::clone(&self.id))
    }
}
