//! A generation as its caller holds it.

use std::sync::Arc;

use actix::{Actor as _, Addr, ArbiterHandle};
use tokio::sync::oneshot;

use crate::mailbox::tell;
use crate::observe::feed::FeedHandle;
use crate::ports::clock::Clock;
use crate::ports::meter::Meter;
use crate::ports::store::{Conversations, Generations};
use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::shard::evaluation::Evaluations;

use super::active::ActiveGenerations;
use super::actor::{CancelGeneration, GenerationActor, HoldGeneration, ReleaseGeneration};
use super::compiled::CompiledAgents;
use super::generation_registry::GenerationRegistry;
use super::run::Start;
use super::tools::{RunWorkflow, ToolLimits};
use super::{GenerateError, Generation, GenerationRequest, GenerationSubscriber};

/// What a generation needs of its surroundings. Cheap to clone.
#[derive(Clone)]
pub struct GenerationDeps {
    /// Names the agents, models and tools.
    pub registry: Arc<Registry>,
    /// Keeps the history.
    pub generations: Arc<dyn Generations>,
    /// Keeps what agents remember.
    pub conversations: Arc<dyn Conversations>,
    /// Stamps the history.
    pub clock: Arc<dyn Clock>,
    /// Counts live generations.
    pub active: Arc<ActiveGenerations>,
    /// Runs the workflows that are tools.
    pub(crate) workflows: Arc<dyn RunWorkflow>,
    /// Bounds the calls of tools.
    pub(crate) tool_limits: ToolLimits,
    /// What agents' definitions say, ready for use.
    pub(crate) compiled: Arc<CompiledAgents>,
    /// Finds live generations.
    pub live: Arc<GenerationRegistry>,
    /// Tells those who watch of spans.
    pub(crate) feed: FeedHandle,
    /// Takes what costs more than a turn.
    pub(crate) evaluations: Arc<Evaluations>,
    /// Counts what has ended.
    pub meter: Arc<dyn Meter>,
    /// How often a model is asked again for an object that did not meet its schema.
    pub object_repairs: u32,
    /// Turns of one run, whatever the caller or the agent says.
    pub steps_max: u32,
    /// All that the model of one run may say, and all that its tools may give, in bytes each.
    pub bytes_max: usize,
}

impl std::fmt::Debug for GenerationDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GenerationDeps")
            .field("object_repairs", &self.object_repairs)
            .field("steps_max", &self.steps_max)
            .field("bytes_max", &self.bytes_max)
            .finish_non_exhaustive()
    }
}

/// Starts a generation as an actor on the arbiter. The id must be fresh, or that of the same step
/// before a crash: the history has one entry by that id. The agent counts as working from here
/// on. The subscriber hears all that the generation says.
pub fn spawn_generation(
    arbiter: &ArbiterHandle,
    deps: GenerationDeps,
    request: GenerationRequest,
    id: String,
    subscriber: Option<GenerationSubscriber>,
) -> GenerationHandle {
    let (answer, awaited) = oneshot::channel();
    let (begin, begun) = oneshot::channel();
    let start = match Start::resolve(deps, request, id, subscriber, begin, answer) {
        Ok(start) => start,
        Err(refusal) => return GenerationHandle { state: State::Over(Box::new(Err(refusal))) },
    };
    let actor = GenerationActor::start_in_arbiter(arbiter, |_| GenerationActor::new(start));
    let guard = CancelOnDrop { actor, is_detached: false };
    GenerationHandle { state: State::Live { awaited, begun: Some(begun), guard } }
}

/// A generation under way. Dropping the handle, or the future of [`GenerationHandle::outcome`],
/// cancels it, unless it was let go: nobody would read the answer.
#[derive(Debug)]
pub struct GenerationHandle {
    state: State,
}

#[derive(Debug)]
enum State {
    /// Never started, and nothing of it is in the history; or ended, and its end is known.
    Over(Box<Result<Generation, GenerateError>>),
    Live {
        awaited: oneshot::Receiver<Result<Generation, GenerateError>>,
        /// Until somebody waits for it.
        begun: Option<oneshot::Receiver<()>>,
        guard: CancelOnDrop,
    },
}

impl GenerationHandle {
    /// Whether it was started, and is in the history or will be.
    pub(crate) fn is_started(&self) -> bool {
        self.actor().is_some()
    }

    /// Waits for the end. Resolves after the history's entry of it is durable.
    pub async fn outcome(self) -> Result<Generation, GenerateError> {
        match self.state {
            State::Over(outcome) => *outcome,
            State::Live { awaited, begun, guard } => {
                // nobody waits for the first word any more
                drop(begun);
                let outcome = awaited.await;
                drop(guard);
                outcome.unwrap_or_else(|_| Err(lost()))
            }
        }
    }

    /// Waits until it has begun for the subscriber, or has ended well without a word. The error is
    /// that of a run that failed before.
    pub async fn begun(&mut self) -> Result<(), GenerateError> {
        if let State::Live { awaited, begun, .. } = &mut self.state
            && let Some(begins) = begun.take()
            && begins.await.is_err()
        {
            let outcome = awaited.await.unwrap_or_else(|_| Err(lost()));
            self.state = State::Over(Box::new(outcome));
        }
        match &self.state {
            State::Live { .. } => Ok(()),
            State::Over(outcome) => outcome.as_ref().as_ref().map(drop).map_err(Clone::clone),
        }
    }

    /// Asks the generation to stop; [`GenerationHandle::outcome`] then tells whether it did, or
    /// had ended before.
    pub fn cancel(&self) {
        if let Some(actor) = self.actor() {
            tell(actor, CancelGeneration { ended: None });
        }
    }

    /// Returns a handle that pauses the generation while this one waits for the outcome.
    pub fn pause_handle(&self) -> PauseHandle {
        PauseHandle { actor: self.actor().cloned() }
    }

    /// Lets the generation run on after the handle is dropped.
    pub fn detach(&mut self) {
        match &mut self.state {
            State::Over(_) => {}
            State::Live { guard, .. } => guard.is_detached = true,
        }
    }

    fn actor(&self) -> Option<&Addr<GenerationActor>> {
        match &self.state {
            State::Over(_) => None,
            State::Live { guard, .. } => Some(&guard.actor),
        }
    }
}

fn lost() -> GenerateError {
    GenerateError::Unavailable(Unavailable::ActorLost)
}

/// Pauses and unpauses a generation. Without effect on one that has ended. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PauseHandle {
    actor: Option<Addr<GenerationActor>>,
}

impl PauseHandle {
    /// Lets the generation finish what is under way, and begin no further turn.
    pub fn hold(&self) {
        if let Some(actor) = &self.actor {
            tell(actor, HoldGeneration);
        }
    }

    /// Lets it go on after a [`PauseHandle::hold`].
    pub fn release(&self) {
        if let Some(actor) = &self.actor {
            tell(actor, ReleaseGeneration);
        }
    }
}

/// Cancels when dropped. After the end this reaches nobody and changes nothing.
#[derive(Debug)]
struct CancelOnDrop {
    actor: Addr<GenerationActor>,
    is_detached: bool,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if !self.is_detached {
            tell(&self.actor, CancelGeneration { ended: None });
        }
    }
}
