//! Answers to asks in the messages of a chat, with which its generation continues.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;

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
        let mut has_answered = false;
        let mut first_refusal = None;
        let mut ready = None;
        let replies = Replies::of(&chat.replies);
        let asks = self.kept(&id).await?.map(|found| found.kept.asks()).unwrap_or_default();
        for pending in &asks {
            let Some(reply) = replies.to(pending) else { continue };
            let data = match (reply, pending.kind) {
                (Reply::Decided { approved, reason }, AskKind::Approval) => {
                    json!({ "approved": approved, "reason": reason })
                }
                (Reply::Given(data), AskKind::Input) => data.clone(),
                // clients that know no approvals give decisions as results
                (Reply::Given(data), AskKind::Approval) if data["approved"].is_boolean() => {
                    data.clone()
                }
                _ => continue,
            };
            let ask = self.find_ask(&pending.ask_id, &chat.visibility).await;
            let ask = ask.map_err(ContinueChatError::Ask)?;
            let access = AskAccess { answerer: chat.answerer.clone(), ..AskAccess::default() };
            if let Err(error) = access.check(&ask, self.shared.clock.now()) {
                first_refusal = first_refusal.or(Some(error));
                continue;
            }
            let AskSubject::Call(call) = ask.subject else { continue };
            let by = chat.by.clone().map(Arc::new);
            let answer = AskAnswer { by, data: Arc::new(data), key: None };
            match self.settle_ask(&pending.ask_id, &call, answer, &access).await {
                Ok(is_ready) => {
                    has_answered = true;
                    if is_ready {
                        ready = Some(call.generation_id);
                    }
                }
                Err(AskError::Closed { .. }) => {}
                Err(error) => first_refusal = first_refusal.or(Some(error)),
            }
        }
        if let Some(error) = first_refusal {
            if !has_answered {
                return Err(ContinueChatError::Ask(error));
            }
            // the client sees that this one still waits, and the log why
            log::info!("generation {id}: an answer in a message of its chat was refused: {error}");
        }
        if let Some(ready) = ready {
            let gone_on = self.go_on(&ready, chat.by.as_ref(), Some(subscriber)).await;
            let gone_on = gone_on.inspect_err(|why| self.go_on_later(&ready, why))?;
            if let Some((id, handle)) = gone_on {
                return Ok(ContinuedChat::Streams(StreamedGeneration::new(id, handle)));
            }
        }
        let Some(found) = self.kept(&id).await? else {
            return Err(ContinueChatError::NothingWaits);
        };
        let asks = self.open_asks(&found).await?;
        if asks.is_empty() {
            return Err(ContinueChatError::NothingWaits);
        }
        Ok(ContinuedChat::Waits(WaitingChat {
            generation_id: id.to_string(),
            message_id: found.kept.message_id().to_owned(),
            usage: found.entry.record.usage.unwrap_or_default(),
            asks,
        }))
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
        let is_visible = chat.visibility.reaches(ask.user_id.as_deref());
        let AskSubject::Call(call) = ask.subject else { return Ok(None) };
        let mut id = Some(call.generation_id).filter(|_| is_visible);
        while let Some(child) = &id {
            let Some(found) = self.kept(child).await? else { return Ok(None) };
            match found.kept.parent {
                Some(parent) => id = Some(parent),
                None => {
                    return Ok(id.filter(|_| found.entry.record.agent_id == chat.agent_id));
                }
            }
        }
        Ok(None)
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
