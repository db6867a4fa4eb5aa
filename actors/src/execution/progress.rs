//! Progress of the agent, the function or the tool of a step, forwarded to current subscribers.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message};
use serde_json::Value;

use crate::agent::generation::{GenerationProgress, GenerationSubscriber};
use crate::counters::Counters;
use crate::domain::expression::json_bytes_exceed;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::time::Timestamp;
use crate::execution::publish::Subscribers;
use crate::function::ProgressSender;
use crate::mailbox::force_send;
use crate::ports::clock::Clock;
use crate::requests::{ProgressBatch, StepProgress};
use crate::shared::Shared;

/// Mailbox capacity of a relay, in messages of a generation.
const RELAY_MAILBOX: usize = 1024;
/// Largest progress value of a function or a tool, in bytes of JSON.
const PROGRESS_BYTES_MAX: usize = 64 * 1024;
/// Progress values that the function or the tool of an attempt may send in a second.
const PROGRESS_PER_SECOND: u32 = 100;

/// Receives the events of one attempt. A separate actor, so that a flood of text never delays a
/// command in the execution's mailbox.
pub(super) struct ProgressRelay {
    execution_id: ExecutionId,
    path: StepPath,
    subscribers: Subscribers,
    clock: Arc<dyn Clock>,
    /// Progress since the last batch.
    progress: Vec<StepProgress>,
}

/// A progress value of the attempt's function or tool.
#[derive(Message)]
#[rtype(result = "()")]
struct FunctionProgress(Value);

/// Publishes the progress collected so far.
#[derive(Message)]
#[rtype(result = "()")]
struct Flush;

/// Ends the relay with its attempt: no progress is published afterwards.
#[derive(Message)]
#[rtype(result = "()")]
struct AttemptEnded;

/// Ends the relay of an attempt when dropped.
pub(super) struct RelayGuard {
    relay: Addr<ProgressRelay>,
}

impl ProgressRelay {
    /// Starts a relay on this thread, which the subscriber list belongs to.
    pub(super) fn start(
        execution_id: ExecutionId,
        path: StepPath,
        subscribers: Subscribers,
        clock: Arc<dyn Clock>,
    ) -> RelayGuard {
        let relay = Self { execution_id, path, subscribers, clock, progress: Vec::new() };
        let relay = Self::create(|ctx| {
            ctx.set_mailbox_capacity(RELAY_MAILBOX);
            relay
        });
        RelayGuard { relay }
    }
}

impl RelayGuard {
    /// Returns the subscriber of a generation. Events beyond the mailbox's capacity are lost.
    pub(super) fn subscriber(&self) -> GenerationSubscriber {
        GenerationSubscriber { events: self.relay.clone().recipient(), disconnect: Arc::new(|| {}) }
    }

    /// Resolves when all progress so far has been published.
    pub(super) fn flushed(&self) -> impl Future<Output = ()> + Send + use<> {
        let relay = self.relay.clone();
        async move {
            // A relay that has ended has nothing left to publish.
            let _ = relay.send(Flush).await;
        }
    }

    /// Returns the sender of a function or a tool. Values that are too large or too many are dropped and
    /// counted.
    pub(super) fn sender(&self, shared: &Arc<Shared>) -> ProgressSender {
        let (relay, shared) = (self.relay.clone(), Arc::clone(shared));
        let window = Mutex::new((Timestamp::default(), 0));
        ProgressSender(Some(Arc::new(move |event| {
            let is_accepted = !json_bytes_exceed(&event, PROGRESS_BYTES_MAX)
                && is_in_time(&window, shared.clock.now())
                && relay.try_send(FunctionProgress(event)).is_ok();
            if !is_accepted {
                Counters::add_one(&shared.counters.progress_dropped);
            }
            is_accepted
        })))
    }
}

/// Counts the values sent within a second; returns false once there are too many.
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
        force_send(&self.relay, AttemptEnded);
    }
}

impl Actor for ProgressRelay {
    type Context = Context<Self>;
}

impl Handler<GenerationProgress> for ProgressRelay {
    type Result = ();

    fn handle(&mut self, progress: GenerationProgress, ctx: &mut Self::Context) {
        // An empty message only checks for room. There always is: slow subscribers lose progress.
        if progress.0.is_empty() {
            return;
        }
        if self.progress.is_empty() {
            // Queued behind the messages already in the mailbox, so that they form one batch.
            ctx.notify(Flush);
        }
        self.progress.push(StepProgress::Agent(progress));
    }
}

impl Handler<FunctionProgress> for ProgressRelay {
    type Result = ();

    fn handle(&mut self, FunctionProgress(event): FunctionProgress, ctx: &mut Self::Context) {
        if self.progress.is_empty() {
            ctx.notify(Flush);
        }
        self.progress.push(StepProgress::Function(Arc::new(event)));
    }
}

impl Handler<Flush> for ProgressRelay {
    type Result = ();

    fn handle(&mut self, _: Flush, _: &mut Self::Context) {
        let progress = std::mem::take(&mut self.progress);
        if !progress.is_empty() {
            self.subscribers.publish_progress(ProgressBatch {
                execution_id: self.execution_id.clone(),
                path: Arc::clone(&self.path),
                at: self.clock.now(),
                progress,
                rendered: OnceLock::new(),
            });
        }
    }
}

impl Handler<AttemptEnded> for ProgressRelay {
    type Result = ();

    fn handle(&mut self, _: AttemptEnded, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
