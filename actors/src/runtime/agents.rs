//! Agents through the one door: generations, their history, tools, conversations.

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
use crate::visibility::Visibility;

/// A generation that is being read live. Dropping it cancels the run, unless it is a chat of a
/// resumable agent: that goes on, to be found by its conversation.
#[derive(Debug)]
pub struct StreamedGeneration {
    pub id: Arc<str>,
    _handle: GenerationHandle,
}

/// Why an agent gave nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct FailedGeneration {
    /// None of one that has not begun: the history does not know it.
    pub id: Option<Arc<str>>,
    pub error: GenerateError,
}

impl<E: Into<GenerateError>> From<E> for FailedGeneration {
    fn from(error: E) -> Self {
        Self { id: None, error: error.into() }
    }
}

/// Why a generation could not be cancelled.
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
        tokio::select! {
            outcome = generation.outcome() => {
                outcome.map_err(|error| FailedGeneration { id, error })
            }
            // Dropping the other future cancels the generation.
            () = self.shared.ending.cancelled() => {
                Err(Unavailable::Draining { execution: None }.into())
            }
        }
    }

    /// Runs an agent for a reader. Resolves when the run has begun as [`GenerationRequest::begins`]
    /// says (the events from `Start` on are then with the reader or on their way), or with why it
    /// did not.
    pub async fn stream_generation(
        &self,
        request: GenerationRequest,
        subscriber: GenerationSubscriber,
    ) -> Result<StreamedGeneration, FailedGeneration> {
        let registry = self.registry();
        let agent = registry.agents.get(&request.agent_id);
        let outlives_reader = agent.is_some_and(|agent| request.is_resumable_chat(agent));
        let (id, mut handle) = self.spawn(request, Some(subscriber))?;
        if outlives_reader {
            handle.detach();
        }
        let known = handle.is_started().then(|| Arc::clone(&id));
        let begun = handle.begun().await;
        begun.map_err(|error| FailedGeneration { id: known, error })?;
        Ok(StreamedGeneration { id, _handle: handle })
    }

    /// Adds a reader to the chat that runs in a conversation, from its first event on. None when
    /// none runs, when its agent's chats end with their reader, or when the chat has said too
    /// much or has too many readers to be told again.
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
        // one that ends meanwhile has no address any more
        chat.send(SubscribeToGeneration(subscriber)).await.ok().flatten()
    }

    /// Cancels a generation of the agent that the caller sees; resolves when its end is durable.
    pub async fn cancel_generation(
        &self,
        agent_id: &str,
        generation_id: &str,
        visibility: &Visibility,
    ) -> Result<(), CancelGenerationError> {
        let live = self.generations.live.find(agent_id, generation_id, visibility);
        let was_live = live.is_some();
        if let Some(actor) = live {
            cancelled(actor).await;
        }
        let id = || generation_id.to_owned();
        let entry = self.shared.store.generation(generation_id).await.map_err(Unavailable::from)?;
        let record = entry.map(|entry| entry.record).filter(|record| {
            record.agent_id == agent_id && visibility.reaches(record.user_id.as_deref())
        });
        match record.map(|record| record.status) {
            None => Err(CancelGenerationError::NotFound(id())),
            Some(GenerationStatus::Cancelled) if was_live => Ok(()),
            // nothing is at work: the step that it belongs to has yet to ask again
            Some(GenerationStatus::Working) => Err(CancelGenerationError::NotFound(id())),
            Some(
                status @ (GenerationStatus::Completed
                | GenerationStatus::Error
                | GenerationStatus::Cancelled),
            ) => Err(CancelGenerationError::Ended { id: id(), status }),
        }
    }

    /// The agent's generations that the caller sees but the newest `offset`, newest first.
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

    /// Deletes all conversations and the history of a user, of all agents; gives how many
    /// conversations there were. What runs for the user is cancelled first: its last record
    /// would bring back what was deleted. What the user did to executions stays without its name,
    /// and without the data that it resumed them with.
    pub async fn forget_user(&self, user_id: &str) -> Result<u64, Unavailable> {
        join_all(self.generations.live.of_user(user_id).into_iter().map(cancelled)).await;
        // Before, so that nothing in memory is kept with the name once the store has none; and
        // after, for what was loaded meanwhile.
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

    /// What agents remember. For the routes that show and change it.
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
    // one that ends meanwhile takes no message any more
    let _ = actor.send(CancelGeneration { ended: Some(ended) }).await;
    // resolves when the actor lets go of the other half
    let _ = end.await;
}
