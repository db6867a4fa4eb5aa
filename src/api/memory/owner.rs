//! Owner of the conversations that a request accesses: an agent and a user.

use std::sync::Arc;

use greenroom_actors::ports::store::ConversationKey;

use super::Request;
use crate::api::error::ApiError;
use crate::api::executions::Sent;
use crate::api::query::value_of;
use crate::api::wire::conversation::OwnerBody;
use crate::api::{agents, json};

/// Maximum of agents that a refusal names.
const NAMED_MAX: usize = 20;

pub(super) struct Owner {
    pub(super) agent_id: Arc<str>,
    pub(super) user_id: Option<Arc<str>>,
    /// True if the caller sees no conversations, not even those without a user.
    pub(super) sees_nothing: bool,
}

/// A body, or its refusal.
type Read<'b> = Result<&'b [u8], ApiError>;

impl Owner {
    /// Finds the owner. The agent has to be named unless there is only one. The body overrides the
    /// query.
    pub(super) fn of(request: Request<'_>, body: &OwnerBody) -> Result<Self, ApiError> {
        let Request { runtime, caller, pairs } = request;
        let registry = runtime.registry();
        let known = &registry.agents;
        let agent = match body.agent_id.as_deref().or_else(|| value_of(pairs, "agentId")) {
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
        let user_id = caller.user_of(pairs, body.user_id.as_deref())?.map(Arc::from);
        let sees_nothing = caller.sees_nothing();
        Ok(Self { agent_id: Arc::from(agent.id.as_str()), user_id, sees_nothing })
    }

    /// As [`Owner::of`], for a request without a body.
    pub(super) fn of_query(request: Request<'_>) -> Result<Self, ApiError> {
        Self::of(request, &OwnerBody::default())
    }

    /// As [`Owner::of`], for a body that may be refused: then the owner is that of the query. An agent
    /// that does not exist is reported before the refusal.
    pub(super) fn of_body<'b>(
        request: Request<'_>,
        body: Sent<'b>,
    ) -> Result<(Self, Read<'b>), ApiError> {
        let named = body.map_err(Clone::clone).and_then(|bytes| {
            let named: OwnerBody = json::parse_or_empty(bytes)?;
            Ok((named, bytes))
        });
        match named {
            Ok((named, bytes)) => Ok((Self::of(request, &named)?, Ok(bytes))),
            Err(refusal) => match Self::of_query(request) {
                Ok(owner) => Ok((owner, Err(refusal))),
                Err(missing @ ApiError::AgentNotFound(_)) => Err(missing),
                Err(_) => Err(refusal),
            },
        }
    }

    /// Returns the key of a conversation of the owner.
    pub(super) fn key(&self, conversation_id: &str) -> Result<ConversationKey, ApiError> {
        if self.sees_nothing {
            return Err(ApiError::ConversationNotFound);
        }
        Ok(ConversationKey {
            agent_id: Arc::clone(&self.agent_id),
            user_id: self.user_id.clone(),
            conversation_id: Arc::from(conversation_id),
        })
    }
}
