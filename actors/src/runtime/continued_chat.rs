//! Answers to asks in the messages of a chat, with which its generation continues.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::agent::PendingAsk;
use crate::agent::generation::GenerationSubscriber;
use crate::agent::generation::waiting_chats::waiting_in;
use crate::ports::model::Usage;
use crate::ports::store::{AskAnswer, AskKind, AskSubject};
use crate::requests::{AskAccess, AskError, ChatReply, ContinueChat, Reply, Unavailable};
use crate::runtime::Runtime;
use crate::runtime::agents::{FailedGeneration, StreamedGeneration};

/// Outcome of the answers in a message of a chat.
#[derive(Debug)]
pub enum ContinuedChat {
    /// The generation continues for the subscriber.
    Streams(StreamedGeneration),
    /// It still waits; the record has its message and what it waits for.
    Waits(WaitingChat),
}

/// A generation of a chat that waits for people.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingChat {
    pub generation_id: String,
    /// Id of the assistant's message.
    pub message_id: String,
    /// Tokens so far.
    pub usage: Usage,
    /// With the reasons why answers of the message were refused.
    pub asks: Vec<PendingAsk>,
}

impl Runtime {
    /// Takes the answers in a message of a chat. The generation continues for the subscriber once all
    /// of its asks are answered, also if the caller leaves.
    pub async fn continue_chat(
        &self,
        chat: ContinueChat,
        subscriber: GenerationSubscriber,
    ) -> Result<ContinuedChat, ContinueChatError> {
        let id = self.shared.clock.new_id();
        let taking = async move |runtime: Self| runtime.take_replies(chat, subscriber).await;
        self.to_the_end(&id, taking).await?
    }

    async fn take_replies(
        &self,
        chat: ContinueChat,
        subscriber: GenerationSubscriber,
    ) -> Result<ContinuedChat, ContinueChatError> {
        let Some(id) = self.generation_of_chat(&chat).await? else {
            return Err(ContinueChatError::NothingWaits);
        };
        let outcomes = self.settle_replies(&id, &chat).await?;
        let is_answered = outcomes.iter().any(|(_, outcome)| outcome.is_ok());
        let mut refused = HashMap::new();
        for (ask_id, outcome) in &outcomes {
            let Err(error) = outcome else { continue };
            if !is_answered {
                return Err(ContinueChatError::Ask(error.clone()));
            }
            log::info!(
                "generation {id}: an answer in a message of its chat, to {ask_id}, was refused: \
                 {error}"
            );
            refused.insert(Arc::clone(ask_id), error.to_string());
        }
        // several sub-agents may be ready at once, and the last one lets their caller continue
        for ready in outcomes.into_iter().filter_map(|(_, outcome)| outcome.ok().flatten()) {
            let gone_on = self.go_on(&ready, chat.by.as_ref(), Some(subscriber.clone())).await;
            let gone_on = gone_on.inspect_err(|why| self.go_on_later(&ready, why))?;
            if let Some((id, handle)) = gone_on {
                return Ok(ContinuedChat::Streams(StreamedGeneration::new(id, handle)));
            }
        }
        let Some(found) = self.continuable(&id).await? else {
            return Err(ContinueChatError::NothingWaits);
        };
        let mut asks = self.open_asks(&found).await?;
        if asks.is_empty() {
            return Err(ContinueChatError::NothingWaits);
        }
        for ask in &mut asks {
            ask.refused = refused.remove(&ask.ask_id);
        }
        Ok(ContinuedChat::Waits(WaitingChat {
            generation_id: id.to_string(),
            message_id: found.continuation.message_id().to_owned(),
            usage: found.entry.record.usage.unwrap_or_default(),
            asks,
        }))
    }

    /// Takes the replies of a chat that are answers to open asks, in the order of the asks, without
    /// those that come after another answer. An answer may have made a generation ready. The
    /// program's own checks run beside each other.
    async fn settle_replies(
        &self,
        generation_id: &str,
        chat: &ContinueChat,
    ) -> Result<Vec<(Arc<str>, Result<Option<Arc<str>>, AskError>)>, Unavailable> {
        let replies = Replies::of(&chat.replies);
        let asks = self.continuable(generation_id).await?.map(|found| found.continuation.asks());
        let answers = asks.into_iter().flatten().filter_map(|ask| {
            let data = answer_of(replies.to(&ask)?, ask.kind)?;
            Some((ask.ask_id, data))
        });
        let settling = answers.map(|(ask_id, data)| async move {
            let settled = self.settle_reply(&ask_id, data, chat).await;
            (ask_id, settled)
        });
        // without checks, each of them would only be in the way of the others
        let at_once = match self.shared.checks_answers() {
            true => self.shared.limits.answer_checks_max.max(1),
            false => 1,
        };
        let settled: Vec<_> = stream::iter(settling).buffered(at_once).collect().await;
        let is_late = |outcome: &Result<_, _>| matches!(outcome, Err(AskError::Closed { .. }));
        Ok(settled.into_iter().filter(|(_, outcome)| !is_late(outcome)).collect())
    }

    /// Takes the answer to an ask. Returns the generation that can continue since, if there is one.
    async fn settle_reply(
        &self,
        ask_id: &Arc<str>,
        data: Value,
        chat: &ContinueChat,
    ) -> Result<Option<Arc<str>>, AskError> {
        let ask = self.find_ask(ask_id, &chat.visibility).await?;
        let access = AskAccess {
            answerer: chat.answerer.clone(),
            permissions: chat.permissions.clone(),
            ..AskAccess::default()
        };
        access.check(&ask, self.shared.clock.now())?;
        let AskSubject::Call(call) = ask.subject else { return Err(AskError::NotFound) };
        let by = chat.by.clone().map(Arc::new);
        let answer = AskAnswer { by, data: Arc::new(data), key: None };
        let is_ready = self.settle_ask(ask_id, &call, answer, &access).await?;
        Ok(is_ready.then_some(call.generation_id))
    }

    /// Finds the generation that the replies of a chat are for: the one that waits in the
    /// conversation, or the one whose approval is named.
    async fn generation_of_chat(
        &self,
        chat: &ContinueChat,
    ) -> Result<Option<Arc<str>>, Unavailable> {
        if let Some(key) = &chat.conversation {
            let waiting = waiting_in(&*self.shared.store, key).await?;
            if let Some(id) = waiting.chats.last() {
                return Ok(Some(Arc::from(id.as_str())));
            }
        }
        let named = chat.replies.iter().find_map(|reply| reply.approval_id.as_deref());
        let Some(named) = named else { return Ok(None) };
        let Some(ask) = self.shared.store.ask(named).await? else { return Ok(None) };
        let is_visible = chat.visibility.allows(ask.user_id.as_deref());
        let AskSubject::Call(call) = ask.subject else { return Ok(None) };
        let mut id = Some(call.generation_id).filter(|_| is_visible);
        while let Some(child) = &id {
            let Some(found) = self.continuable(child).await? else { return Ok(None) };
            match found.continuation.parent {
                Some(parent) => id = Some(parent),
                None => {
                    return Ok(id.filter(|_| found.entry.record.agent_id == chat.agent_id));
                }
            }
        }
        Ok(None)
    }
}

/// Returns the answer to an ask of this kind that a reply gives, if it is one.
fn answer_of(reply: &Reply, kind: AskKind) -> Option<Value> {
    match (reply, kind) {
        (Reply::Decided { approved, reason }, AskKind::Approval) => {
            Some(json!({ "approved": approved, "reason": reason }))
        }
        (Reply::Given(data), AskKind::Input) => Some(data.clone()),
        // clients that know no approvals give decisions as results
        (Reply::Given(data), AskKind::Approval) if data["approved"].is_boolean() => {
            Some(data.clone())
        }
        _ => None,
    }
}

/// Replies by what they name; of several, the first one counts. A message may have any number.
#[derive(Default)]
struct Replies<'r> {
    by_ask: HashMap<&'r str, &'r Reply>,
    by_call: HashMap<&'r str, &'r Reply>,
}

impl<'r> Replies<'r> {
    fn of(replies: &'r [ChatReply]) -> Self {
        let mut named = Self::default();
        for ChatReply { tool_call_id, approval_id, reply } in replies {
            let known = match approval_id {
                Some(id) => named.by_ask.entry(id.as_ref()),
                None => named.by_call.entry(tool_call_id.as_ref()),
            };
            known.or_insert(reply);
        }
        named
    }

    fn to(&self, ask: &PendingAsk) -> Option<&'r Reply> {
        let by_ask = self.by_ask.get(&*ask.ask_id);
        by_ask.or_else(|| self.by_call.get(&**ask.waiting_call())).copied()
    }
}

/// Refusal of the answers in a message of a chat.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ContinueChatError {
    /// Everything was answered before, or withdrawn.
    #[error("nothing waits for these answers")]
    NothingWaits,
    #[error(transparent)]
    Ask(AskError),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<ContinueChatError> for FailedGeneration {
    fn from(error: ContinueChatError) -> Self {
        let error = match error {
            ContinueChatError::Unavailable(why) => why.into(),
            error => crate::agent::GenerateError::Failed(error.to_string()),
        };
        Self { id: None, error }
    }
}
