//! A generation as its caller holds it.

use std::sync::Arc;

use actix::{Actor as _, Addr, ArbiterHandle};
use tokio::sync::oneshot;

use crate::ports::clock::Clock;
use crate::ports::store::Generations;
use crate::registry::Registry;
use crate::requests::Unavailable;

use super::actor::{CancelGeneration, GenerationActor, HoldGeneration, Start};
use super::tools::{RunWorkflow, ToolLimits};
use super::working::Working;
use super::{GenerateError, Generation, GenerationRequest, GenerationSubscriber};

/// What a generation needs of its surroundings. Cheap to clone.
#[derive(Clone)]
pub struct GenerationDeps {
    /// Names the agents and models.
    pub registry: Arc<Registry>,
    /// Keeps the history.
    pub generations: Arc<dyn Generations>,
    /// Stamps the history.
    pub clock: Arc<dyn Clock>,
    /// Counts live generations.
    pub working: Arc<Working>,
    /// Runs the workflows that are tools.
    pub(crate) workflows: Arc<dyn RunWorkflow>,
    /// Bounds the calls of tools.
    pub(crate) tool_limits: ToolLimits,
    /// How often a model is asked again for an object that did not meet its schema.
    pub object_repairs: u32,
}

impl std::fmt::Debug for GenerationDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GenerationDeps")
            .field("object_repairs", &self.object_repairs)
            .finish_non_exhaustive()
    }
}

/// Starts a generation as an actor on the arbiter. The id must be fresh: the history has one
/// entry by that id. The agent counts as working from here on. A subscriber hears everything; with
/// none the model is asked for whole answers.
pub fn spawn_generation(
    arbiter: &ArbiterHandle,
    deps: GenerationDeps,
    request: GenerationRequest,
    id: String,
    subscriber: Option<GenerationSubscriber>,
) -> GenerationHandle {
    let (answer, awaited) = oneshot::channel();
    let start = match Start::resolve(deps, request, id, answer, subscriber) {
        Ok(start) => start,
        Err(refusal) => return GenerationHandle { state: State::Refused(Some(refusal)) },
    };
    let actor = GenerationActor::start_in_arbiter(arbiter, |_| GenerationActor::new(start));
    GenerationHandle { state: State::Live { awaited, guard: CancelOnDrop { actor } } }
}

/// A generation under way. Dropping the handle cancels it: nobody would read the answer.
#[derive(Debug)]
pub struct GenerationHandle {
    state: State,
}

#[derive(Debug)]
enum State {
    /// Never started; nothing of it is in the history.
    Refused(Option<GenerateError>),
    Live {
        awaited: oneshot::Receiver<Result<Generation, GenerateError>>,
        guard: CancelOnDrop,
    },
}

impl GenerationHandle {
    /// Waits for the end, which is given once. Resolves after the history's entry of it is durable.
    pub async fn outcome(&mut self) -> Result<Generation, GenerateError> {
        let lost = || GenerateError::Unavailable(Unavailable::ActorLost);
        match &mut self.state {
            State::Refused(refusal) => Err(refusal.take().unwrap_or_else(lost)),
            State::Live { awaited, .. } => awaited.await.unwrap_or_else(|_| Err(lost())),
        }
    }

    /// Lets the generation finish the turn that it is in, and start no further one.
    pub fn hold(&self) {
        self.set_held(true);
    }

    /// Lets it go on.
    pub fn release(&self) {
        self.set_held(false);
    }

    fn set_held(&self, is_held: bool) {
        match &self.state {
            State::Refused(_) => {}
            // As with a cancel: refused only by an actor that has ended or will be asked again.
            State::Live { guard, .. } => drop(guard.actor.try_send(HoldGeneration { is_held })),
        }
    }

    /// Asks the generation to stop; [`GenerationHandle::outcome`] then tells whether it did, or
    /// had ended before.
    pub fn cancel(&self) {
        match &self.state {
            State::Refused(_) => {}
            State::Live { guard, .. } => guard.cancel(),
        }
    }
}

/// Cancels when dropped. After the end this reaches nobody and changes nothing.
#[derive(Debug)]
struct CancelOnDrop {
    actor: Addr<GenerationActor>,
}

impl CancelOnDrop {
    fn cancel(&self) {
        // Refused only by an actor that has ended, or by a mailbox full of other cancels.
        let _ = self.actor.try_send(CancelGeneration);
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.cancel();
    }
}
