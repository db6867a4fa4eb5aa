//! Reads the conversation of a run, and withdraws what was asked in it.

use crate::agent::generation::GenerateError;
use crate::agent::generation::idle_end::{IdleEnd, end_and_count};
use crate::agent::generation::memory::{MemoryInput, Remembered, Sent, messages_to_read};
use crate::agent::generation::waiting_chats::waiting_in;
use crate::domain::message::Message;
use crate::ports::store::{GenerationStatus, PageSize, ReadError};
use crate::requests::Unavailable;

use super::Run;
use super::start::conversation_key;

impl Run {
    /// Withdraws what the agent asks in the conversation, which continues without answers.
    pub(super) async fn withdraw_asks(&self) -> Result<(), GenerateError> {
        let may_ask = self.agent.memory && self.agent.has_tools() && self.is_free();
        let Some(key) = conversation_key(&self.record).filter(|_| may_ask) else { return Ok(()) };
        let withdrawn = Box::pin(async {
            for id in waiting_in(&*self.deps.generations, &key).await?.chats {
                let end = IdleEnd {
                    from: Some(GenerationStatus::Suspended),
                    revision: None,
                    status: GenerationStatus::Cancelled,
                    error: None,
                    why: "not approved: the user went on".to_owned(),
                    at: self.deps.clock.now(),
                };
                end_and_count(&self.deps, &id, end).await?;
            }
            Ok::<_, Unavailable>(())
        });
        Ok(self.recording.during(withdrawn).await?)
    }

    /// Returns `None` if the agent has no memory or the run no conversation.
    pub(super) async fn remember(
        &mut self,
        messages: &[Message],
        sent: Sent,
        context_limit: u32,
    ) -> Result<Option<Remembered>, GenerateError> {
        if !self.agent.memory {
            return Ok(None);
        }
        let Some(key) = conversation_key(&self.record) else { return Ok(None) };
        let context_limit = context_limit as usize;
        let most = messages_to_read(messages.len(), sent, context_limit);
        let store = &self.deps.conversations;
        let conversation = store.conversation(&key);
        let stored = async {
            match most {
                0 => Ok(Vec::new()),
                most => store.messages(&key, None, PageSize::of(most)).await,
            }
        };
        let approved = store.approved_tools(&key);
        let (conversation, stored, approved) = tokio::try_join!(conversation, stored, approved)
            .map_err(|error: ReadError| GenerateError::Unavailable(error.into()))?;
        self.approved_tools = approved;
        let working_memory = conversation.and_then(|conversation| conversation.working_memory);
        let asked = MemoryInput {
            messages,
            sent,
            context_limit,
            generation_id: &self.id,
            at: self.record.start_time,
        };
        Ok(Some(Remembered::new(key, working_memory, stored, &asked)))
    }
}
