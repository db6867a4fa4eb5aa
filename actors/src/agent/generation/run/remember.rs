//! Reads the conversation of a run.

use crate::agent::generation::GenerateError;
use crate::agent::generation::memory::{MemoryInput, Remembered, Sent, messages_to_read};
use crate::domain::message::Message;
use crate::ports::store::ReadError;

use super::Run;
use super::start::conversation_key;

impl Run {
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
                most => store.messages(&key, None, most).await,
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
