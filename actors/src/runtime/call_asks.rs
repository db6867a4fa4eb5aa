//! Asks of calls of tools: what people see of them, and their answers.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::agent::PendingAsk;
use crate::agent::generation::GenerationSubscriber;
use crate::agent::generation::continuation::{CallAnswer, CallAsk};
use crate::agent::generation::tools::checked;
use crate::domain::nesting::check_depth;
use crate::domain::principal::Principal;
use crate::domain::schema::Schema;
use crate::ports::model::Usage;
use crate::ports::store::{
    Ask, AskAnswer, AskChange, AskKind, AskState, AskSubject, AskedCall, GenerationStatus,
};
use crate::ports::workers::Lane;
use crate::requests::{
    AnswerAsk, Answered, ApproveCall, AskAccess, AskDetail, AskError, ChatReply, ContinueChat,
    Reply, Unavailable,
};
use crate::runtime::Runtime;
use crate::runtime::agents::{FailedGeneration, StreamedGeneration};
use crate::runtime::suspended::{Change, Kept};
use crate::visibility::Visibility;

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

/// Decision about an approval.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    approved: bool,
    #[serde(default)]
    reason: Option<String>,
    /// New arguments of the call.
    #[serde(default)]
    input: Option<Value>,
}

impl Runtime {
    pub(super) async fn describe_call_ask(&self, ask: Ask) -> Result<AskDetail, AskError> {
        let content = self.shared.store.ask_content(&ask.id).await?;
        let details = content.details.unwrap_or_default();
        let schema = match ask.kind {
            AskKind::Approval => Some(decision_schema(details["edit"] == true)),
            _ => details.get("schema").filter(|schema| schema.is_object()).cloned(),
        };
        let schema = schema.and_then(|schema| Schema::compile(&schema).ok());
        let answer = content.answer.map(|AskAnswer { by, data }| Answered { by, data });
        let payload = details.get("input").cloned().map(Arc::new);
        Ok(AskDetail { ask, payload, schema, answer })
    }

    /// Answers an ask of a call, and continues the generation if it was the last one. The caller may
    /// leave: a recorded answer is followed by the rest.
    pub(super) async fn answer_call_ask(
        &self,
        ask: Ask,
        answer: AnswerAsk,
    ) -> Result<AskDetail, AskError> {
        let id = Arc::clone(&ask.id);
        let answering = async move |runtime: Self| runtime.take_answer(ask, answer).await;
        self.to_the_end(&id, answering).await?
    }

    /// Does work on a thread of the runtime, which continues if the caller drops this future.
    async fn to_the_end<T: Send + 'static>(
        &self,
        id: &str,
        work: impl AsyncFnOnce(Self) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let arbiter = self.arbiters.spread(id).ok_or(Unavailable::ActorLost)?;
        let (runtime, (done, outcome)) = (self.clone(), oneshot::channel());
        arbiter.spawn_fn(move || {
            actix::spawn(async move { drop(done.send(work(runtime).await)) });
        });
        outcome.await.map_err(|_| Unavailable::ActorLost)
    }

    async fn take_answer(&self, ask: Ask, answer: AnswerAsk) -> Result<AskDetail, AskError> {
        let AskSubject::Call(call) = &ask.subject else { return Err(AskError::NotFound) };
        let AnswerAsk { data, by, access, idempotency } = answer;
        if ask.closed_at.is_none() {
            access.check(&ask, self.shared.clock.now())?;
        }
        let (data, by) = (Arc::new(data), by.map(Arc::new));
        let settled = self.settle_ask(&ask.id, call, Arc::clone(&data), by.clone()).await;
        match settled {
            Ok(is_ready) => {
                if is_ready {
                    self.go_on_soon(&call.generation_id, by.as_deref()).await;
                }
            }
            Err(AskError::Closed { .. }) if idempotency.is_some() => {
                // of two calls with one key, the first one may have answered
                let content = self.shared.store.ask_content(&ask.id).await?;
                let is_same = content.answer.is_some_and(|it| it.by == by && it.data == data);
                if !is_same {
                    return Err(self.closed_call_ask(&ask).await?);
                }
            }
            Err(error) => return Err(error),
        }
        let now = self.find_ask(&ask.id, &Visibility::Everything).await?;
        self.describe_call_ask(now).await
    }

    /// Records the answer to an ask of a call. Returns true if its generation can continue since.
    async fn settle_ask(
        &self,
        ask_id: &Arc<str>,
        call: &AskedCall,
        data: Arc<Value>,
        by: Option<Arc<Principal>>,
    ) -> Result<bool, AskError> {
        self.shared.accepts_writes()?;
        let depth_max = self.shared.limits.machine.value_depth_max;
        check_depth(&data, depth_max).map_err(|deep| AskError::InvalidData(deep.to_string()))?;
        let changed = self.change_kept(&call.generation_id, async |found: &Kept| {
            let Some((_, asked)) = found.kept.asked(ask_id) else {
                return Ok(Change::None(false));
            };
            let answer = self.call_answer(asked, call, &data, by.clone()).await?;
            let mut kept = found.kept.clone();
            kept.answer(ask_id, answer);
            let answer = AskAnswer { by: by.clone(), data: Arc::clone(&data) };
            let asks = vec![AskChange::Close {
                id: Arc::clone(ask_id),
                state: AskState::Answered,
                at: self.shared.clock.now(),
                answer: Some(Arc::new(answer)),
            }];
            Ok::<_, AskError>(Change::Put { kept: Box::new(kept), asks, value: true })
        });
        match changed.await? {
            Some((true, is_ready)) => Ok(is_ready),
            Some((false, _)) | None => {
                let now = self.find_ask(ask_id, &Visibility::Everything).await?;
                Err(self.closed_call_ask(&now).await?)
            }
        }
    }

    /// Checks an answer.
    async fn call_answer(
        &self,
        asked: &CallAsk,
        call: &AskedCall,
        data: &Arc<Value>,
        by: Option<Arc<Principal>>,
    ) -> Result<CallAnswer, AskError> {
        let lane = Lane::of(&call.agent_id, by.as_ref().map(|by| &*by.id));
        if asked.ask.kind != AskKind::Approval {
            let schema = asked.ask.schema.as_ref().and_then(|it| Schema::compile(it).ok());
            let Some(schema) = schema else { return Ok(CallAnswer::Given(Value::clone(data))) };
            let evaluations = &self.shared.evaluations;
            let checked = evaluations.check_for_request(lane, &schema, Value::clone(data)).await?;
            let data = checked.map_err(|violation| AskError::InvalidData(violation.to_string()))?;
            return Ok(CallAnswer::Given(data));
        }
        let Decision { approved, reason, input } = Decision::deserialize(&**data)
            .map_err(|error| AskError::InvalidData(error.to_string()))?;
        if !approved {
            return Ok(CallAnswer::Refused { by, reason });
        }
        let Some(input) = input else { return Ok(CallAnswer::Approved { input: None }) };
        if !asked.is_editable {
            let why = "input: the arguments of this call cannot be changed".to_owned();
            return Err(AskError::InvalidData(why));
        }
        let registry = self.registry();
        let Some(tool) = registry.tools.get(&*call.tool_name) else {
            let why = format!("input: the tool {} no longer exists", call.tool_name);
            return Err(AskError::InvalidData(why));
        };
        let depth_max = self.shared.limits.machine.value_depth_max;
        let checked = checked(&self.shared.evaluations, lane, tool, input, depth_max).await;
        let input = checked.map_err(|why| AskError::InvalidData(format!("input: {why}")))?;
        Ok(CallAnswer::Approved { input: Some(input) })
    }

    /// Returns the refusal of an answer to an ask of a call that is closed.
    pub(super) async fn closed_call_ask(&self, ask: &Ask) -> Result<AskError, AskError> {
        let now = self.find_ask(&ask.id, &Visibility::Everything).await?;
        let content = self.shared.store.ask_content(&ask.id).await?;
        let state = match now.state {
            AskState::Open => AskState::Withdrawn,
            state => state,
        };
        let at = now.closed_at.unwrap_or_else(|| self.shared.clock.now());
        Ok(AskError::Closed { state, at, by: content.answer.and_then(|answer| answer.by) })
    }

    /// Answers the approval of a call of a generation.
    pub async fn approve_call(&self, request: ApproveCall) -> Result<AskDetail, AskError> {
        let ApproveCall { agent_id, generation_id, tool_call_id, visibility, answer } = request;
        let found = self.generation(&agent_id, &generation_id, &visibility).await?;
        if found.is_none() {
            return Err(AskError::NotFound);
        }
        let asks = self.pending_asks(&generation_id).await?;
        let ask = asks.iter().find(|ask| **ask.waiting_call() == *tool_call_id);
        let ask = ask.ok_or(AskError::NotFound)?;
        let ask = self.find_ask(&ask.ask_id, &visibility).await?;
        self.answer_ask(ask, answer).await
    }

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
        for ChatReply { tool_call_id, approval_id, reply } in &chat.replies {
            let Some(found) = self.kept(&id).await? else { break };
            let asks = found.kept.asks();
            let is_meant = |ask: &&PendingAsk| match approval_id {
                Some(id) => *ask.ask_id == **id,
                None => **ask.waiting_call() == **tool_call_id,
            };
            let Some(pending) = asks.iter().find(is_meant) else { continue };
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
            match self.settle_ask(&pending.ask_id, &call, Arc::new(data), by).await {
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
        if let Some(error) = first_refusal.filter(|_| !has_answered) {
            return Err(ContinueChatError::Ask(error));
        }
        if let Some(ready) = ready
            && let Some(streams) = self.stream_on(ready, chat.by.as_ref(), subscriber).await?
        {
            return Ok(ContinuedChat::Streams(streams));
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

    /// Continues a generation for a subscriber, or later without it.
    async fn stream_on(
        &self,
        ready: Arc<str>,
        by: Option<&Principal>,
        subscriber: GenerationSubscriber,
    ) -> Result<Option<StreamedGeneration>, Unavailable> {
        match self.go_on(&ready, by, Some(subscriber)).await {
            Ok(gone_on) => Ok(gone_on.map(|(id, handle)| StreamedGeneration::new(id, handle))),
            Err(why) => {
                self.go_on_later(ready, &why).await;
                Err(why)
            }
        }
    }

    /// Returns what a generation waits for, if it is suspended.
    pub async fn pending_asks(&self, generation_id: &str) -> Result<Vec<PendingAsk>, Unavailable> {
        match self.kept(generation_id).await? {
            Some(found) if found.entry.record.status == GenerationStatus::Suspended => {
                self.open_asks(&found).await
            }
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// Returns the asks of a generation that wait for an answer. Those of a sub-agent are looked up:
    /// the caller's continuation has them until all of them are answered.
    async fn open_asks(&self, found: &Kept) -> Result<Vec<PendingAsk>, Unavailable> {
        let mut open = Vec::new();
        for pending in found.kept.asks() {
            let is_open = match pending.shown_at {
                None => true,
                Some(_) => {
                    let ask = self.shared.store.ask(&pending.ask_id).await?;
                    ask.is_some_and(|ask| ask.state == AskState::Open)
                }
            };
            if is_open {
                open.push(pending);
            }
        }
        Ok(open)
    }

    /// Finds the generation that the replies of a chat are for: the one that waits in the
    /// conversation, or the one whose approval is named.
    async fn generation_of_chat(
        &self,
        chat: &ContinueChat,
    ) -> Result<Option<Arc<str>>, Unavailable> {
        if let Some(key) = &chat.conversation {
            let waiting = self.shared.store.suspended_in(key).await?;
            if let Some(id) = waiting.last() {
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

/// Returns the schema of a decision about an approval.
fn decision_schema(is_editable: bool) -> Value {
    let mut properties = json!({
        "approved": { "type": "boolean" },
        "reason": { "type": "string" }
    });
    if is_editable {
        properties["input"] = json!({ "type": "object" });
    }
    json!({
        "type": "object",
        "required": ["approved"],
        "properties": properties,
        "additionalProperties": false
    })
}
