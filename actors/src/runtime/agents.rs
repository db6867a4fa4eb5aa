//! Requests about agents: generations, their history, conversations.

use std::sync::Arc;

use actix::Addr;
use futures_util::future::join_all;
use tokio::sync::oneshot;

use crate::agent::generation::actor::{CancelGeneration, GenerationActor, SubscribeToGeneration};
use crate::agent::generation::{
    GenerateError, Generation, GenerationHandle, GenerationRequest, GenerationSubscriber,
    spawn_generation,
};
use crate::execution::ForgetUser;
use crate::ports::store::{ConversationKey, Conversations, GenerationPage, GenerationStatus};
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
        let known = handle.is_started().then(|| Arc::clone(&id));
        let recording = handle.recording();
        let begun = tokio::select! {
            begun = handle.begun() => begun,
            // Dropping the handle cancels the generation, if it is not detached.
            () = self.shared.patience_is_over_since(|| recording.since()) => Err(refusal(None).into()),
        };
        begun.map_err(|error| FailedGeneration { id: known, error })?;
        Ok(StreamedGeneration { id, _handle: handle })
    }

    /// Adds a subscriber to the running chat of a conversation, from its first event on. Returns
    /// `None` when none runs, when the agent's chats end with their subscriber, or when the chat is
    /// too long to replay or has too many subscribers.
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
        let chat = self.generations.live.chat(&key)?;
        // fails if the chat ends in the meantime
        chat.send(SubscribeToGeneration(subscriber)).await.ok().flatten()
    }

    /// Cancels a generation that the caller sees; resolves when its end is durable. In an outage of
    /// the store that outlasts the patience, it is recorded after it.
    pub async fn cancel_generation(
        &self,
        agent_id: &str,
        generation_id: &str,
        visibility: &Visibility,
    ) -> Result<(), CancelGenerationError> {
        let live = self.generations.live.find(agent_id, generation_id, visibility);
        let was_live = live.is_some();
        if let Some(actor) = live {
            self.shared.unless_outage(None, cancelled(actor)).await?;
        }
        let id = || generation_id.to_owned();
        let entry = self.shared.store.generation(generation_id).await.map_err(Unavailable::from)?;
        let record = entry.map(|entry| entry.record).filter(|record| {
            record.agent_id == agent_id && visibility.reaches(record.user_id.as_deref())
        });
        match record.map(|record| record.status) {
            None => Err(CancelGenerationError::NotFound(id())),
            Some(GenerationStatus::Cancelled) if was_live => Ok(()),
            // interrupted: it is not running, and its step will start it again
            Some(GenerationStatus::Working) => Err(CancelGenerationError::NotFound(id())),
            Some(
                status @ (GenerationStatus::Completed
                | GenerationStatus::Error
                | GenerationStatus::Cancelled),
            ) => Err(CancelGenerationError::Ended { id: id(), status }),
        }
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
    /// without the data of its resumes.
    pub async fn forget_user(&self, user_id: &str) -> Result<u64, Unavailable> {
        self.shared.accepts_writes()?;
        let running = self.generations.live.of_user(user_id).into_iter().map(cancelled);
        self.shared.unless_outage(None, join_all(running)).await?;
        // Before, so that memory records the name nowhere after the store has erased it; and
        // after, for executions loaded in between.
        self.forget_in_memory(user_id).await;
        let forgotten = self.shared.store.forget_user(user_id.to_owned()).await;
        self.forget_in_memory(user_id).await;
        forgotten.map_err(Unavailable::from)
    }

    async fn forget_in_memory(&self, user_id: &str) {
        let user: Arc<str> = user_id.into();
        let forget = ForgetUser(Arc::clone(&user));
        join_all(self.system.shards.iter().map(|shard| shard.send(forget.clone()))).await;
        self.shared.feed.forget_user(user).await;
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

/// Cancels a generation and waits until its end is durable.
async fn cancelled(actor: Addr<GenerationActor>) {
    let (ended, end) = oneshot::channel();
    // fails if the generation ends in the meantime
    let _ = actor.send(CancelGeneration { ended: Some(ended) }).await;
    // resolves when the actor drops the sender
    let _ = end.await;
}
