//! Requests about agents: generations, their history, conversations.

use std::sync::Arc;

use crate::agent::generation::{
    Begins, GenerateError, Generation, GenerationHandle, GenerationRequest, GenerationSubscriber,
    spawn_generation,
};
use crate::cluster::generations::pass_events;
use crate::ports::store::{
    ConversationKey, Conversations, GenerationEntry, GenerationPage, GenerationStatus, PageSize,
    ReadError,
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
                let error = Unavailable::Draining { execution: None }.into();
                Err(FailedGeneration { id, error })
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

    /// Returns the recorded status of a generation of the agent, if the caller sees it.
    pub(super) async fn generation_status(
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
            record.agent_id == agent_id && visibility.allows(record.user_id.as_deref())
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
    ) -> Result<GenerationPage, ReadError> {
        let user_id = match visibility {
            Visibility::Everything => None,
            Visibility::Of(user_id) => Some(&**user_id),
            Visibility::Nothing => return Ok(GenerationPage::default()),
        };
        self.shared.store.generations(agent_id, user_id, offset, self.page_size(limit)).await
    }

    /// Returns the size of a page with this many records, for the routes that show them.
    pub fn page_size(&self, records: usize) -> PageSize {
        PageSize { records, bytes: self.limits().page_bytes_max }
    }

    /// Returns the conversations of agents, for the routes that show and change them. One is deleted by
    /// [`Runtime::delete_conversation`].
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
        if self.runs_all_generations() {
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
