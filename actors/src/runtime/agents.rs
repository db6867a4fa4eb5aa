//! Requests about agents: generations, their history, conversations.

use std::sync::Arc;

use crate::agent::generation::{
    Begins, GenerateError, Generation, GenerationHandle, GenerationRequest, GenerationSubscriber,
    spawn_generation,
};
use crate::cluster::generations::pass_events;
use crate::ports::store::{
    ConversationKey, Conversations, GenerationEntry, GenerationPage, GenerationStatus,
};
use crate::requests::Unavailable;
use crate::runtime::Runtime;
use crate::shared::refusal;
use crate::visibility::Visibility;

/// A streamed generation. Dropping it cancels the run, unless it is a chat of a resumable agent:
/// that continues and is found by its conversation.
#[derive(Debug)]
pub struct StreamedGeneration {
    pub id: Arc<str>,
    _handle: GenerationHandle,
}

impl StreamedGeneration {
    pub(super) fn new(id: Arc<str>, handle: GenerationHandle) -> Self {
        Self { id, _handle: handle }
    }
}

/// A generation that continues without its caller.
#[derive(Debug)]
pub struct BegunGeneration {
    pub id: Arc<str>,
    handle: GenerationHandle,
}

impl BegunGeneration {
    /// Waits for the end. Dropping the future does not cancel the generation.
    pub async fn outcome(self) -> Result<Generation, FailedGeneration> {
        let Self { id, handle } = self;
        handle.outcome().await.map_err(|error| FailedGeneration { id: Some(id), error })
    }
}

/// Failure of a generation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct FailedGeneration {
    /// `None` if it did not begin and is not in the history.
    pub id: Option<Arc<str>>,
    pub error: GenerateError,
}

impl<E: Into<GenerateError>> From<E> for FailedGeneration {
    fn from(error: E) -> Self {
        Self { id: None, error: error.into() }
    }
}

/// Refusal of the cancellation of a generation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CancelGenerationError {
    #[error("generation {0} not found")]
    NotFound(String),
    #[error("generation {id} has ended already")]
    Ended { id: String, status: GenerationStatus },
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Runtime {
    /// Runs an agent to its answer. Dropping the future cancels the generation.
    pub async fn generate(
        &self,
        request: GenerationRequest,
    ) -> Result<Generation, FailedGeneration> {
        let (id, generation) = self.spawn(request, None)?;
        let id = generation.is_started().then_some(id);
        let recording = generation.recording();
        tokio::select! {
            outcome = generation.outcome() => {
                outcome.map_err(|error| FailedGeneration { id, error })
            }
            // Dropping the other future cancels the generation.
            () = self.shared.ending.cancelled() => {
                Err(Unavailable::Draining { execution: None }.into())
            }
            () = self.shared.patience_is_over_since(|| recording.since()) => {
                Err(FailedGeneration { id, error: refusal(None).into() })
            }
        }
    }

    /// Runs an agent without a caller. Resolves when the history has the generation, or with the
    /// error that prevented it; dropping the future before that cancels the generation.
    pub async fn begin_generation(
        &self,
        request: GenerationRequest,
    ) -> Result<BegunGeneration, FailedGeneration> {
        let request = GenerationRequest { begins: Begins::OnceRecorded, ..request };
        let (id, mut handle) = self.spawn(request, None)?;
        self.wait_until_begun(&id, &mut handle).await?;
        handle.detach();
        Ok(BegunGeneration { id, handle })
    }

    /// Runs an agent for a subscriber. Resolves when the run has begun as defined by
    /// [`GenerationRequest::begins`] (events from `Start` on have then been sent to the
    /// subscriber), or with the error that prevented it.
    pub async fn stream_generation(
        &self,
        request: GenerationRequest,
        subscriber: GenerationSubscriber,
    ) -> Result<StreamedGeneration, FailedGeneration> {
        let registry = self.registry();
        let agent = registry.agents.get(&request.agent_id);
        let is_detached = agent.is_some_and(|agent| request.is_resumable_chat(agent));
        let (id, mut handle) = self.spawn(request, Some(subscriber))?;
        if is_detached {
            handle.detach();
        }
        self.wait_until_begun(&id, &mut handle).await?;
        Ok(StreamedGeneration { id, _handle: handle })
    }

    /// Waits until a run has begun. Dropping the handle of one that has not cancels it, if it is not
    /// detached.
    async fn wait_until_begun(
        &self,
        id: &Arc<str>,
        handle: &mut GenerationHandle,
    ) -> Result<(), FailedGeneration> {
        let known = handle.is_started().then(|| Arc::clone(id));
        let recording = handle.recording();
        let begun = tokio::select! {
            begun = handle.begun() => begun,
            () = self.shared.patience_is_over_since(|| recording.since()) => Err(refusal(None).into()),
        };
        begun.map_err(|error| FailedGeneration { id: known, error })
    }

    /// Adds a subscriber to the running chat of a conversation, from its first event on, whichever
    /// process runs it. Returns `None` when none runs that can be reached, when the agent's chats
    /// end with their subscriber, or when the chat is too long to replay or has too many
    /// subscribers.
    pub async fn attach_to_chat(
        &self,
        agent_id: &str,
        user_id: Option<&str>,
        conversation_id: &str,
        subscriber: GenerationSubscriber,
    ) -> Option<Arc<str>> {
        let key = ConversationKey {
            agent_id: Arc::from(agent_id),
            user_id: user_id.map(Arc::from),
            conversation_id: Arc::from(conversation_id),
        };
        if let Some(id) = self.shared.attach_here(&key, subscriber.clone()).await {
            return Some(id);
        }
        let (id, events) = self.shared.find_chat_elsewhere(&key).await?;
        let arbiter = self.arbiters.spread(&id)?;
        let passing = pass_events(events, subscriber, self.limits());
        let followed = self.generations.live.followed.enter(agent_id);
        arbiter.spawn(async move {
            passing.await;
            drop(followed);
        });
        Some(id)
    }

    /// Cancels a generation that the caller sees; resolves when its end is durable. In an outage of
    /// the store that outlasts the patience, it is recorded after it.
    pub async fn cancel_generation(
        &self,
        agent_id: &str,
        generation_id: &str,
        visibility: &Visibility,
    ) -> Result<(), CancelGenerationError> {
        let mut was_live = self.shared.cancel_here(agent_id, generation_id, visibility).await?;
        let mut status = self.generation_status(agent_id, generation_id, visibility).await?;
        if !was_live && status == Some(GenerationStatus::Working) {
            was_live = self.shared.cancel_elsewhere(agent_id, generation_id, visibility).await?;
            status = self.generation_status(agent_id, generation_id, visibility).await?;
        }
        let id = || generation_id.to_owned();
        if status == Some(GenerationStatus::Suspended) {
            let (from, to) = (Some(GenerationStatus::Suspended), GenerationStatus::Cancelled);
            return match self.end_kept(generation_id, from, to, None, "cancelled").await? {
                true => Ok(()),
                // an answer came first: it runs, or has ended
                false => {
                    Box::pin(self.cancel_generation(agent_id, generation_id, visibility)).await
                }
            };
        }
        match status {
            None => Err(CancelGenerationError::NotFound(id())),
            Some(GenerationStatus::Cancelled) if was_live => Ok(()),
            Some(GenerationStatus::Working | GenerationStatus::Suspended) => {
                self.cancel_interrupted(agent_id, generation_id).await
            }
            Some(
                status @ (GenerationStatus::Completed
                | GenerationStatus::Error
                | GenerationStatus::Cancelled),
            ) => Err(CancelGenerationError::Ended { id: id(), status }),
        }
    }

    /// Ends a generation that no process runs; one of a step is started again instead.
    async fn cancel_interrupted(
        &self,
        agent_id: &str,
        generation_id: &str,
    ) -> Result<(), CancelGenerationError> {
        let all = &Visibility::Everything;
        let entry = self.generation(agent_id, generation_id, all).await?;
        let is_of_step = entry.is_none_or(|entry| entry.record.origin.is_some());
        let is_running = self.generations.live.find(agent_id, generation_id, all).is_some();
        let (from, to) = (Some(GenerationStatus::Working), GenerationStatus::Cancelled);
        let can_end = !is_of_step && !is_running;
        match can_end && self.end_kept(generation_id, from, to, None, "cancelled").await? {
            true => Ok(()),
            false => Err(CancelGenerationError::NotFound(generation_id.to_owned())),
        }
    }

    /// Returns the recorded status of a generation of the agent, if the caller sees it.
    async fn generation_status(
        &self,
        agent_id: &str,
        generation_id: &str,
        visibility: &Visibility,
    ) -> Result<Option<GenerationStatus>, Unavailable> {
        let entry = self.generation(agent_id, generation_id, visibility).await?;
        Ok(entry.map(|entry| entry.record.status))
    }

    /// Returns a generation of the agent as recorded so far, if the caller sees it.
    pub async fn generation(
        &self,
        agent_id: &str,
        generation_id: &str,
        visibility: &Visibility,
    ) -> Result<Option<GenerationEntry>, Unavailable> {
        let entry = self.shared.store.generation(generation_id).await?;
        Ok(entry.filter(|GenerationEntry { record, .. }| {
            record.agent_id == agent_id && visibility.reaches(record.user_id.as_deref())
        }))
    }

    /// Returns generations of the agent that the caller sees, newest first, without the newest
    /// `offset`.
    pub async fn history(
        &self,
        agent_id: &str,
        visibility: &Visibility,
        offset: u64,
        limit: usize,
    ) -> Result<GenerationPage, Unavailable> {
        let user_id = match visibility {
            Visibility::Everything => None,
            Visibility::Of(user_id) => Some(&**user_id),
            Visibility::Nothing => return Ok(GenerationPage::default()),
        };
        Ok(self.shared.store.generations(agent_id, user_id, offset, limit).await?)
    }

    /// Deletes all conversations and the history of a user, for all agents; returns the number of
    /// conversations. Running generations of the user are cancelled first, because their last
    /// record would restore deleted data. Executions keep what the user did, without its name and
    /// without the data of its resumes. Refused if another process cannot be reached, which could
    /// bring the name back.
    pub async fn forget_user(&self, user_id: &str) -> Result<u64, Unavailable> {
        self.shared.accepts_writes()?;
        let user: Arc<str> = Arc::from(user_id);
        // Before, so that memory records the name nowhere after the store has erased it; and
        // after, for executions loaded in between.
        self.shared.forget_everywhere(&user, true).await?;
        let forgotten = self.shared.store.forget_user(user_id.to_owned()).await;
        self.shared.forget_everywhere(&user, false).await?;
        forgotten.map_err(Unavailable::from)
    }

    /// Returns the conversations of agents, for the routes that show and change them.
    pub fn conversations(&self) -> &dyn Conversations {
        &*self.shared.store
    }

    fn spawn(
        &self,
        request: GenerationRequest,
        subscriber: Option<GenerationSubscriber>,
    ) -> Result<(Arc<str>, GenerationHandle), Unavailable> {
        if self.shared.is_draining() {
            return Err(Unavailable::Draining { execution: None });
        }
        self.shared.accepts_writes()?;
        if self.generations.active.live() >= self.shared.limits.generations_live_max {
            return Err(Unavailable::Busy { execution: None });
        }
        let chosen = request.chosen_id.as_deref().map(Arc::from);
        let id = chosen.unwrap_or_else(|| self.shared.clock.new_id());
        let arbiter = self.arbiters.spread(&id).ok_or(Unavailable::ActorLost)?;
        let deps = self.generation_deps();
        let handle = spawn_generation(arbiter, deps, request, id.to_string(), subscriber);
        Ok((id, handle))
    }
}
