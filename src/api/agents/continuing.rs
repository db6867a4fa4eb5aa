//! Answers to what suspended generations wait for: in a chat, and about one call.

use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::agent::generation::{
    GenerationEvent, GenerationRequest, GenerationSubscriber,
};
use greenroom_actors::ports::model::FinishReason;
use greenroom_actors::ports::store::ConversationKey;
use greenroom_actors::requests::{
    AnswerAsk, ApproveCall, AskAccess, AskDetail, AskError, ContinueChat, Permissions,
};
use greenroom_actors::runtime::{ContinueChatError, ContinuedChat, WaitingChat};
use serde_json::json;

use super::existing;
use crate::api::caller::Caller;
use crate::api::error::{ApiError, AskRefusal};
use crate::api::executions::Sent;
use crate::api::json::{self, Object};
use crate::api::wire::message::Replies;
use crate::api::wire::pending_ask::ApproveBody;

/// Passes the answers in a message of a chat on. Returns `None` if the message has no answers: the
/// agent is asked with it.
pub async fn continue_chat(
    runtime: &Runtime,
    request: &GenerationRequest,
    replies: Replies,
    (caller, permissions): (&Caller, Permissions),
    subscriber: GenerationSubscriber,
) -> Result<Option<ContinuedChat>, ApiError> {
    let Replies { all, are_answers } = replies;
    let user_id = request.user_id.as_deref();
    let conversation = request.conversation_id.as_deref().map(|id| ConversationKey {
        agent_id: Arc::from(request.agent_id.as_str()),
        user_id: user_id.map(Arc::from),
        conversation_id: Arc::from(id),
    });
    let first = all.iter().find_map(|reply| reply.approval_id.clone()).unwrap_or_default();
    let chat = ContinueChat {
        agent_id: request.agent_id.clone(),
        conversation,
        replies: all,
        visibility: caller.visibility(),
        by: caller.principal(user_id)?,
        answerer: Some(caller.answerer(user_id)),
        permissions,
    };
    match runtime.continue_chat(chat, subscriber).await {
        Ok(continued) => Ok(Some(continued)),
        Err(ContinueChatError::NothingWaits) if are_answers => {
            Err(ApiError::Ask(AskRefusal::NothingWaits))
        }
        Err(ContinueChatError::NothingWaits) => Ok(None),
        Err(ContinueChatError::Ask(error)) => Err(ApiError::from_ask(&first, error)),
        Err(ContinueChatError::Unavailable(cause)) => Err(cause.into()),
    }
}

/// Returns the events of a chat that still waits.
pub fn waiting_events(waiting: WaitingChat) -> Vec<GenerationEvent> {
    let WaitingChat { generation_id, message_id, usage, asks } = waiting;
    let (generation_id, message_id) = (Arc::from(generation_id), Arc::from(message_id));
    let finish_reason = FinishReason::ToolCalls;
    let mut events = vec![GenerationEvent::Start { generation_id, message_id }];
    events.extend(asks.into_iter().map(|ask| GenerationEvent::Ask(Box::new(ask))));
    events.push(GenerationEvent::Finish { finish_reason, usage, stand_in: None });
    events
}

/// Answers the approval of a call of a generation that the caller sees.
pub async fn approve(
    runtime: &Runtime,
    agent: &AgentDefinition,
    generation_id: &str,
    body: Sent<'_>,
    (caller, permissions): (&Caller, Permissions),
) -> Result<AskDetail, ApiError> {
    let read = body.map_err(Clone::clone);
    let read = read.and_then(|body| read_approval(body, caller, permissions));
    let (tool_call_id, answer) = existing(runtime, agent, generation_id, read, caller).await?;
    let request = ApproveCall {
        agent_id: agent.id.clone(),
        generation_id: generation_id.to_owned(),
        tool_call_id: tool_call_id.clone(),
        visibility: caller.visibility(),
        answer,
    };
    let answered = runtime.approve_call(request).await;
    if matches!(answered, Err(AskError::NotFound)) {
        let seen = runtime.generation(&agent.id, generation_id, &caller.visibility()).await?;
        seen.ok_or_else(|| ApiError::GenerationNotFound(generation_id.to_owned()))?;
    }
    answered.map_err(|error| ApiError::from_ask(&format!("of call {tool_call_id}"), error))
}

/// Reads the call that an approval is about, and the answer.
fn read_approval(
    body: &[u8],
    caller: &Caller,
    permissions: Permissions,
) -> Result<(String, AnswerAsk), ApiError> {
    let ApproveBody { tool_call_id, approved, reason, input, options } = json::parse_closed(body)?;
    let Object(options) = options.unwrap_or_default();
    let named = options.user_id.as_deref();
    let mut data = json!({ "approved": approved });
    if let Some(reason) = reason {
        data["reason"] = reason.into();
    }
    if let Some(input) = input {
        data["input"] = input;
    }
    let answerer = Some(caller.answerer(named));
    let access = AskAccess { answerer, permissions, ..AskAccess::default() };
    let by = caller.principal(named)?;
    Ok((tool_call_id, AnswerAsk { data, by, access, idempotency: None }))
}

#[cfg(test)]
mod tests {
    use greenroom_actors::ports::model::Usage;

    use super::*;

    #[test]
    fn a_chat_that_still_waits_has_a_beginning_and_an_end() {
        let waiting = WaitingChat {
            generation_id: "g1".to_owned(),
            message_id: "m1".to_owned(),
            usage: Usage::default(),
            asks: Vec::new(),
        };
        let events = waiting_events(waiting);
        assert!(
            matches!(&events[0], GenerationEvent::Start { message_id, .. } if **message_id == *"m1")
        );
        assert!(events[1].is_last());
    }
}
