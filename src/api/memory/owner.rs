//! Whose conversations a request is about: an agent's and a user's.

use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::ports::store::ConversationKey;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::query::{Pairs, value_of};
use crate::api::wire::conversation::OwnerBody;
use crate::api::{agents, json};

/// Agents that a refusal names; a text for people.
const NAMED_MAX: usize = 20;

pub(super) struct Owner {
    pub(super) agent_id: Arc<str>,
    pub(super) user_id: Option<Arc<str>>,
    /// It sees nothing of what is kept, though nobody's conversations are kept as its own.
    pub(super) is_blind: bool,
}

/// Reads what a body says of the owner.
pub(super) fn named_in(bytes: &[u8]) -> Result<OwnerBody, ApiError> {
    json::parse_or_empty(bytes)
}

impl Owner {
    /// The agent has to be named unless there is one alone. What the body names counts more than
    /// the address.
    pub(super) fn of(
        runtime: &Runtime,
        caller: &Caller,
        pairs: &Pairs,
        agent_in_body: Option<&str>,
        user_in_body: Option<&str>,
    ) -> Result<Self, ApiError> {
        let registry = runtime.registry();
        let known = &registry.agents;
        let agent = match agent_in_body.or_else(|| value_of(pairs, "agentId")) {
            Some(id) => agents::find(runtime, id)?,
            None if known.len() > 1 => {
                let names: Vec<&str> = known.keys().map(String::as_str).take(NAMED_MAX).collect();
                return Err(ApiError::AgentRequired(format!("one of {}", names.join(", "))));
            }
            None => match known.values().next() {
                Some(agent) => Arc::clone(agent),
                None => return Err(ApiError::AgentRequired("no agent is configured".to_owned())),
            },
        };
        if !agent.memory {
            return Err(ApiError::NoMemory(agent.id.clone()));
        }
        let user_id = caller.user_of(pairs, user_in_body)?.map(Arc::from);
        let is_blind = caller.is_blind();
        Ok(Self { agent_id: Arc::from(agent.id.as_str()), user_id, is_blind })
    }

    /// Names one of the owner's conversations.
    pub(super) fn key(&self, conversation_id: &str) -> Result<ConversationKey, ApiError> {
        if self.is_blind {
            return Err(ApiError::ConversationNotFound);
        }
        Ok(ConversationKey {
            agent_id: Arc::clone(&self.agent_id),
            user_id: self.user_id.clone(),
            conversation_id: Arc::from(conversation_id),
        })
    }
}
