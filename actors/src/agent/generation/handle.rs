//! The caller's handle of a generation.

use std::sync::Arc;

use actix::{Actor as _, Addr, ArbiterHandle};
use tokio::sync::oneshot;

use crate::agent::tool::IsInterrupted;
use crate::ask_alarm::AskAlarm;
use crate::home::Home;
use crate::mailbox::force_send;
use crate::observe::blocked::Warned;
use crate::observe::feed::FeedHandle;
use crate::ports::clock::Clock;
use crate::ports::meter::Meter;
use crate::ports::store::{Conversations, Generations};
use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::shard::evaluation::Evaluations;

use super::active::ActiveGenerations;
use super::actor::{
    CancelGeneration, GenerationActor, Interrupt, PauseGeneration, UnpauseGeneration,
};
use super::compiled::CompiledAgents;
use super::generation_registry::GenerationRegistry;
use super::left_behind::LeftBehind;
use super::recording::Recording;
use super::run::Start;
use super::tools::{RunWorkflow, ToolLimits};
use super::{GenerateError, Generation, GenerationRequest, GenerationSubscriber};

/// Dependencies of a generation. Cheap to clone.
#[derive(Clone)]
pub struct GenerationDeps {
    /// Agents, models and tools.
    pub registry: Arc<Registry>,
    /// Store of the history.
    pub generations: Arc<dyn Generations>,
    /// Store of conversations.
    pub conversations: Arc<dyn Conversations>,
    /// Source of timestamps and ids.
    pub clock: Arc<dyn Clock>,
    /// Counter of live generations.
    pub active: Arc<ActiveGenerations>,
    /// Runner of workflows that are tools.
    pub(crate) workflows: Arc<dyn RunWorkflow>,
    /// Limits of tool calls.
    pub(crate) tool_limits: ToolLimits,
    /// Compiled templates, expressions and tool lists.
    pub(crate) compiled: Arc<CompiledAgents>,
    /// Registry of live generations.
    pub live: Arc<GenerationRegistry>,
    /// Feed of spans to observers.
    pub(crate) feed: FeedHandle,
    /// Workers for evaluations that exceed the budget of a turn.
    pub(crate) evaluations: Arc<Evaluations>,
    /// Tools that were warned of, since they block their thread.
    pub(crate) warned: Arc<Warned>,
    /// Metrics of ended generations.
    pub meter: Arc<dyn Meter>,
    /// Repairs of an object that misses its schema.
    pub object_repairs: u32,
    /// Upper bound on turns of one run.
    pub steps_max: u32,
    /// Maximum bytes of model output of one run, and separately of its tool results.
    pub bytes_max: usize,
    /// Interruptions of one turn after which a run fails.
    pub crash_attempts: u32,
    /// Generations to look at again, among them those that something has begun to wait for: their asks
    /// are answered whenever they are seen, which may be before that is recorded.
    pub(crate) left_behind: Arc<LeftBehind>,
    /// Time of what is due next of asks.
    pub(crate) ask_alarm: Arc<AskAlarm>,
    /// The runtime, for functions of tools.
    pub(crate) home: Home,
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

/// Starts a generation as an actor on the arbiter. The id must be new, or that of the same step
/// before a crash, because the history has one entry per id. The agent counts as working from here
/// on. The subscriber gets every event.
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
        Err(refusal) => return GenerationHandle { state: State::Ended(Box::new(Err(refusal))) },
    };
    let recording = start.recording();
    let actor = GenerationActor::start_in_arbiter(arbiter, |_| GenerationActor::new(start));
    let guard = CancelOnDrop { actor, is_detached: false, is_interrupted: None };
    GenerationHandle { state: State::Live { awaited, begun: Some(begun), recording, guard } }
}

/// A running generation. Dropping the handle, or the future of [`GenerationHandle::outcome`],
/// cancels it, unless it was detached.
#[derive(Debug)]
pub struct GenerationHandle {
    state: State,
}

#[derive(Debug)]
enum State {
    /// Never started and not in the history, or ended with a known outcome.
    Ended(Box<Result<Generation, GenerateError>>),
    Live {
        awaited: oneshot::Receiver<Result<Generation, GenerateError>>,
        /// Taken by the first wait.
        begun: Option<oneshot::Receiver<()>>,
        recording: Recording,
        guard: CancelOnDrop,
    },
}

impl GenerationHandle {
    /// Returns true if it was started, and so is or will be in the history.
    pub(crate) fn is_started(&self) -> bool {
        self.actor().is_some()
    }

    /// Returns since when the run waits for records.
    pub(crate) fn recording(&self) -> Recording {
        match &self.state {
            State::Ended(_) => Recording::default(),
            State::Live { recording, .. } => recording.clone(),
        }
    }

    /// Leaves an error of a run that does not begin to its subscribers: no caller waits for the beginning.
    pub(crate) fn leave_errors_to_subscribers(&mut self) {
        if let State::Live { begun, .. } = &mut self.state {
            *begun = None;
        }
    }

    /// Waits for the end. Resolves once the record of the end is durable.
    pub async fn outcome(self) -> Result<Generation, GenerateError> {
        match self.state {
            State::Ended(outcome) => *outcome,
            State::Live { awaited, begun, guard, .. } => {
                // dropped first: an error then goes to subscribers, not to `begun`
                drop(begun);
                let outcome = awaited.await;
                drop(guard);
                outcome.unwrap_or_else(|_| Err(lost()))
            }
        }
    }

    /// Waits until the run has begun ([`Begins`](super::Begins)), or has ended without output.
    /// Returns the error of a run that failed before that.
    pub async fn begun(&mut self) -> Result<(), GenerateError> {
        if let State::Live { awaited, begun, .. } = &mut self.state
            && let Some(begins) = begun.take()
            && begins.await.is_err()
        {
            let outcome = awaited.await.unwrap_or_else(|_| Err(lost()));
            self.state = State::Ended(Box::new(outcome));
        }
        match &self.state {
            State::Live { .. } => Ok(()),
            State::Ended(outcome) => outcome.as_ref().as_ref().map(drop).map_err(Clone::clone),
        }
    }

    /// Requests a stop; [`GenerationHandle::outcome`] then returns whether it stopped or had
    /// already ended.
    pub fn cancel(&self) {
        if let Some(actor) = self.actor() {
            force_send(actor, CancelGeneration { ended: None });
        }
    }

    /// Returns a handle to pause the generation while this one waits for the outcome.
    pub fn pause_handle(&self) -> PauseHandle {
        PauseHandle { actor: self.actor().cloned() }
    }

    /// Keeps the generation running after the handle is dropped.
    pub fn detach(&mut self) {
        match &mut self.state {
            State::Ended(_) => {}
            State::Live { guard, .. } => guard.is_detached = true,
        }
    }

    /// Has the generation interrupted rather than cancelled when the handle is dropped, if what waits
    /// for it is to continue elsewhere.
    pub(crate) fn leave_if(&mut self, is_interrupted: IsInterrupted) {
        match &mut self.state {
            State::Ended(_) => {}
            State::Live { guard, .. } => guard.is_interrupted = Some(is_interrupted),
        }
    }

    fn actor(&self) -> Option<&Addr<GenerationActor>> {
        match &self.state {
            State::Ended(_) => None,
            State::Live { guard, .. } => Some(&guard.actor),
        }
    }
}

fn lost() -> GenerateError {
    GenerateError::Unavailable(Unavailable::ActorLost)
}

/// Pauses and unpauses a generation. No effect on one that has ended. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PauseHandle {
    actor: Option<Addr<GenerationActor>>,
}

impl PauseHandle {
    /// Pauses: what runs finishes, no further turn begins.
    pub fn pause(&self) {
        if let Some(actor) = &self.actor {
            force_send(actor, PauseGeneration);
        }
    }

    /// Ends a [`PauseHandle::pause`].
    pub fn unpause(&self) {
        if let Some(actor) = &self.actor {
            force_send(actor, UnpauseGeneration);
        }
    }
}

/// Cancels on drop, or interrupts, which has no effect after the end.
struct CancelOnDrop {
    actor: Addr<GenerationActor>,
    is_detached: bool,
    is_interrupted: Option<IsInterrupted>,
}

impl std::fmt::Debug for CancelOnDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelOnDrop")
            .field("is_detached", &self.is_detached)
            .finish_non_exhaustive()
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.is_detached {
            return;
        }
        match self.is_interrupted.as_ref().is_some_and(|is_interrupted| is_interrupted()) {
            true => force_send(&self.actor, Interrupt),
            false => force_send(&self.actor, CancelGeneration { ended: None }),
        }
    }
}
