//! What the agent or the function of a step says while it works, passed on to the readers of the moment.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message};
use serde_json::Value;

use crate::agent::generation::{GenerationProgress, GenerationSubscriber};
use crate::counters::Counters;
use crate::domain::expression::json_bytes_exceed;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::time::Timestamp;
use crate::execution::publish::Readers;
use crate::function::ProgressSender;
use crate::mailbox::tell;
use crate::ports::clock::Clock;
use crate::requests::{ProgressBatch, Said};
use crate::shared::Shared;

/// Messages of a generation that may wait until this thread has time for them.
const RELAY_MAILBOX: usize = 1024;
/// Largest thing that a function says at once, in bytes of JSON.
const PROGRESS_BYTES_MAX: usize = 64 * 1024;
/// Things that the function of an attempt may say in a second.
const PROGRESS_PER_SECOND: u32 = 100;

/// Reads the generation of one attempt. An actor beside the execution, so that a flood of words
/// never stands before a command in the execution's mailbox.
pub(super) struct ProgressRelay {
    execution_id: ExecutionId,
    path: StepPath,
    readers: Readers,
    clock: Arc<dyn Clock>,
    /// Heard since readers were last told.
    said: Vec<Said>,
}

/// Something that the function of the attempt says.
#[derive(Message)]
#[rtype(result = "()")]
struct StepSays(Value);

/// Says that what was heard so far is to be with the readers.
#[derive(Message)]
#[rtype(result = "()")]
struct TellReaders;

/// Says that the attempt is over: nobody hears of its progress after its end.
#[derive(Message)]
#[rtype(result = "()")]
struct AttemptEnded;

/// Ends the relay of an attempt when it is dropped.
pub(super) struct RelayGuard {
    relay: Addr<ProgressRelay>,
}

impl ProgressRelay {
    /// Starts a relay on this thread, which is the readers' too.
    pub(super) fn start(
        execution_id: ExecutionId,
        path: StepPath,
        readers: Readers,
        clock: Arc<dyn Clock>,
    ) -> RelayGuard {
        let relay = Self { execution_id, path, readers, clock, said: Vec::new() };
        let relay = Self::create(|ctx| {
            ctx.set_mailbox_capacity(RELAY_MAILBOX);
            relay
        });
        RelayGuard { relay }
    }

    fn tell_readers(&mut self) {
        let said = std::mem::take(&mut self.said);
        if !said.is_empty() {
            self.readers.tell_progress(ProgressBatch {
                execution_id: self.execution_id.clone(),
                path: Arc::clone(&self.path),
                at: self.clock.now(),
                said,
                rendered: OnceLock::new(),
            });
        }
    }
}

impl RelayGuard {
    /// What the generation is told to speak to. One that is too fast goes on unheard.
    pub(super) fn subscriber(&self) -> GenerationSubscriber {
        GenerationSubscriber { events: self.relay.clone().recipient(), cut: Arc::new(|| {}) }
    }

    /// Resolves when readers have been told of everything that the generation has said.
    pub(super) fn told(&self) -> impl Future<Output = ()> + Send + use<> {
        let relay = self.relay.clone();
        async move {
            // A relay that has ended has nobody left to tell.
            let _ = relay.send(TellReaders).await;
        }
    }
}

impl RelayGuard {
    /// What a function speaks with. What is too large, or too much, is dropped and counted.
    pub(super) fn speech(&self, shared: &Arc<Shared>) -> ProgressSender {
        let (relay, shared) = (self.relay.clone(), Arc::clone(shared));
        let window = Mutex::new((Timestamp::default(), 0));
        ProgressSender(Some(Arc::new(move |event| {
            let is_heard = !json_bytes_exceed(&event, PROGRESS_BYTES_MAX)
                && is_in_time(&window, shared.clock.now())
                && relay.try_send(StepSays(event)).is_ok();
            if !is_heard {
                Counters::add_one(&shared.counters.progress_dropped);
            }
            is_heard
        })))
    }
}

/// Counts what is said in a second, and says whether there may be more of it.
fn is_in_time(window: &Mutex<(Timestamp, u32)>, now: Timestamp) -> bool {
    let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
    let (since, count) = &mut *window;
    if now.ms_since(*since) >= 1000 {
        (*since, *count) = (now, 0);
    }
    *count += 1;
    *count <= PROGRESS_PER_SECOND
}

impl Drop for RelayGuard {
    fn drop(&mut self) {
        tell(&self.relay, AttemptEnded);
    }
}

impl Actor for ProgressRelay {
    type Context = Context<Self>;
}

impl Handler<GenerationProgress> for ProgressRelay {
    type Result = ();

    fn handle(&mut self, progress: GenerationProgress, ctx: &mut Self::Context) {
        // it is asked for room: there always is, since readers that are behind lose progress
        if progress.0.is_empty() {
            return;
        }
        if self.said.is_empty() {
            // After whatever else waits in the mailbox: readers get it as one message.
            ctx.notify(TellReaders);
        }
        self.said.push(Said::Agent(progress));
    }
}

impl Handler<StepSays> for ProgressRelay {
    type Result = ();

    fn handle(&mut self, StepSays(event): StepSays, ctx: &mut Self::Context) {
        if self.said.is_empty() {
            ctx.notify(TellReaders);
        }
        self.said.push(Said::Function(Arc::new(event)));
    }
}

impl Handler<TellReaders> for ProgressRelay {
    type Result = ();

    fn handle(&mut self, _: TellReaders, _: &mut Self::Context) {
        self.tell_readers();
    }
}

impl Handler<AttemptEnded> for ProgressRelay {
    type Result = ();

    fn handle(&mut self, _: AttemptEnded, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
