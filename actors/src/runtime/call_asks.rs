//! Asks of calls of tools: what people see of them, and their answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::agent::PendingAsk;
use crate::agent::generation::continuable::Continuable;
use crate::agent::generation::continuation::{CAN_DECLINE, CallAnswer, CallAsk, DecidedBy};
use crate::agent::generation::tools::{checked, child_of};
use crate::domain::hash::long_hash;
use crate::domain::nesting::check_depth;
use crate::domain::principal::Principal;
use crate::domain::question::{accepted, declined};
use crate::ports::answer_guard::GivenAnswer;
use crate::ports::store::{
    AnswerKey, Ask, AskAnswer, AskChange, AskKind, AskState, AskSubject, AskedCall,
    GenerationStatus,
};
use crate::ports::workers::Lane;
use crate::requests::{
    AnswerAsk, Answered, ApproveCall, AskAccess, AskDetail, AskError, IdempotencyKey, Unavailable,
};
use crate::runtime::Runtime;
use crate::runtime::decision::{self, Decision};
use crate::runtime::suspended::Change;
use crate::visibility::Visibility;

impl Runtime {
    pub(super) async fn describe_call_ask(&self, ask: Ask) -> Result<AskDetail, AskError> {
        let content = self.shared.store.ask_content(&ask.id).await?;
        let details = content.details.unwrap_or_default();
        let is_editable = ask.kind == AskKind::Approval && details["edit"] == true;
        let arguments = match &ask.subject {
            AskSubject::Call(call) if is_editable => {
                let registry = self.registry();
                registry.tools.get(&*call.tool_name).map(|tool| Arc::clone(&tool.arguments))
            }
            AskSubject::Call(_) | AskSubject::Step(_) => None,
        };
        let schema = match ask.kind {
            AskKind::Approval => {
                Some(decision::schema(is_editable, arguments.as_ref().map(|it| it.source())))
            }
            _ => details.get("schema").filter(|schema| schema.is_object()).cloned(),
        };
        let answer = content.answer.map(|AskAnswer { by, data, .. }| Answered { by, data });
        let payload = details.get("input").cloned().map(Arc::new);
        let can_decline = details[CAN_DECLINE] == true;
        Ok(AskDetail { ask, payload, schema, arguments, can_decline, answer })
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

    /// Does work on a thread of the runtime, which continues if the caller drops this future, or has
    /// been refused because an outage of the store outlasts the patience.
    pub(super) async fn to_the_end<T: Send + 'static>(
        &self,
        id: &str,
        work: impl AsyncFnOnce(Self) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let arbiter = self.arbiters.spread(id).ok_or(Unavailable::ActorLost)?;
        let (runtime, (done, outcome)) = (self.clone(), oneshot::channel());
        arbiter.spawn_fn(move || {
            actix::spawn(async move { drop(done.send(work(runtime).await)) });
        });
        let outcome = self.shared.unless_outage(None, outcome).await?;
        outcome.map_err(|_| Unavailable::ActorLost)
    }

    async fn take_answer(&self, ask: Ask, answer: AnswerAsk) -> Result<AskDetail, AskError> {
        let AskSubject::Call(call) = &ask.subject else { return Err(AskError::NotFound) };
        let AnswerAsk { data, by, access, idempotency } = answer;
        if ask.closed_at.is_none() {
            access.check(&ask, self.shared.clock.now())?;
        }
        let (data, by) = (Arc::new(data), by.map(Arc::new));
        let key = idempotency.as_ref().map(AnswerKey::from);
        let answer = AskAnswer { by: by.clone(), data, key: key.clone() };
        let settled = self.settle_ask(&ask.id, call, answer, &access).await;
        match settled {
            Ok(is_ready) => {
                if is_ready {
                    // the answer is recorded: another attempt may continue the generation
                    let going = self.go_on(&call.generation_id, by.as_deref(), None).await;
                    if let Err(why) = going {
                        self.go_on_later(&call.generation_id, &why);
                    }
                }
            }
            Err(refusal @ (AskError::Closed { .. } | AskError::Refused(_))) => {
                // an earlier call with the key may have answered, also while this one was checked
                let Some(key) = key else { return Err(refusal) };
                let content = self.shared.store.ask_content(&ask.id).await?;
                match content.answer.and_then(|answer| answer.key) {
                    Some(earlier) if earlier == key => {}
                    Some(earlier) if earlier.scope == key.scope => return Err(AskError::KeyReused),
                    _ => return Err(refusal),
                }
            }
            Err(error) => return Err(error),
        }
        let now = self.find_ask(&ask.id, &Visibility::Everything).await?;
        self.describe_call_ask(now).await
    }

    /// Asks the program whether the answer to an ask of a call passes, and looks again at who may
    /// answer: the check may take its time.
    async fn check_call_answer(
        &self,
        ask_id: &Arc<str>,
        answer: &AskAnswer,
        access: &AskAccess,
    ) -> Result<(), AskError> {
        let ask = self.find_ask(ask_id, &Visibility::Everything).await?;
        let by = answer.by.as_deref();
        let given = GivenAnswer::to_ask(ask, by, Arc::clone(&answer.data));
        self.shared.check_answer(given).await?;
        let now = self.find_ask(ask_id, &Visibility::Everything).await?;
        access.check(&now, self.shared.clock.now())
    }

    /// Records the answer to an ask of a call, if the program lets it pass. Returns true if its
    /// generation can continue since.
    pub(super) async fn settle_ask(
        &self,
        ask_id: &Arc<str>,
        call: &AskedCall,
        answer: AskAnswer,
        access: &AskAccess,
    ) -> Result<bool, AskError> {
        self.shared.accepts_writes()?;
        let depth_max = self.shared.limits.machine.value_depth_max;
        check_depth(&answer.data, depth_max)
            .map_err(|deep| AskError::InvalidData(deep.to_string()))?;
        let has_passed = AtomicBool::new(!self.shared.checks_answers());
        let changed = self.change_continuation(&call.generation_id, async |found: &Continuable| {
            let Some((_, asked)) = found.continuation.asked(ask_id) else {
                return Ok(Change::None(false));
            };
            let taken = self.call_answer(asked, call, &answer.data, answer.by.clone()).await?;
            if let (CallAnswer::Approved { .. }, Some(request)) = (&taken, &asked.permission) {
                access.permissions.check(request)?;
            }
            if !has_passed.load(Ordering::Relaxed) {
                self.check_call_answer(ask_id, &answer, access).await?;
                has_passed.store(true, Ordering::Relaxed);
            }
            let mut continuation = found.continuation.clone();
            continuation.answer(ask_id, taken);
            let asks = vec![AskChange::Close {
                id: Arc::clone(ask_id),
                state: AskState::Answered,
                at: self.shared.clock.now(),
                answer: Some(Arc::new(answer.clone())),
            }];
            Ok::<_, AskError>(Change::Put {
                continuation: Box::new(continuation),
                asks,
                value: true,
            })
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
            let checked = self.checked_input(asked, lane, data).await?;
            if !asked.is_declinable {
                return Ok(CallAnswer::Given(checked?));
            }
            return match (checked, declined(data)) {
                // a form may have a field with the name of the action
                (Ok(data), _) => Ok(CallAnswer::Given(accepted(&data))),
                (Err(_), Some(declined)) => Ok(CallAnswer::Given(declined)),
                (Err(refusal), None) => Err(refusal),
            };
        }
        let Decision { approved, reason, input } =
            Decision::read(data, asked.is_editable).map_err(AskError::InvalidData)?;
        let by = DecidedBy::Person;
        if !approved {
            return Ok(CallAnswer::Refused { by, reason });
        }
        let Some(input) = input else { return Ok(CallAnswer::Approved { by, input: None }) };
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
        Ok(CallAnswer::Approved { by, input: Some(input) })
    }

    /// Checks an answer against the schema of a question.
    async fn checked_input(
        &self,
        asked: &CallAsk,
        lane: Lane,
        data: &Value,
    ) -> Result<Result<Value, AskError>, AskError> {
        let Some(schema) = &asked.ask.schema else { return Ok(Ok(data.clone())) };
        let evaluations = &self.shared.evaluations;
        let compiled = evaluations.compile_for_request(lane, schema.clone()).await?;
        // only versions that did not compile it before they asked have recorded another one
        let Ok(schema) = compiled else { return Ok(Ok(data.clone())) };
        let checked = evaluations.check_for_request(lane, &schema, data.clone()).await?;
        Ok(checked.map_err(|violation| AskError::InvalidData(violation.to_string())))
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

    /// Answers the approval of a call of a generation, also of one that its sub-agent makes. One that
    /// is closed is refused like every answer to it.
    pub async fn approve_call(&self, request: ApproveCall) -> Result<AskDetail, AskError> {
        let ApproveCall { agent_id, generation_id, tool_call_id, visibility, answer } = request;
        let found = self.generation(&agent_id, &generation_id, &visibility).await?;
        if found.is_none() {
            return Err(AskError::NotFound);
        }
        let own = self.own_ask(&generation_id, &tool_call_id).await?;
        let ask_id = match own {
            Some(own) => own,
            None => self.ask_below(&generation_id, &tool_call_id).await?,
        };
        let ask = self.find_ask(&ask_id, &visibility).await?;
        if ask.kind != AskKind::Approval && ask.state == AskState::Open {
            let why = format!("the call asks a question, which is answered in the inbox: {ask_id}");
            return Err(AskError::InvalidData(why));
        }
        self.answer_ask(ask, answer).await
    }

    /// Returns the newest ask that a call of a generation has itself, if there is any.
    async fn own_ask(
        &self,
        generation_id: &str,
        tool_call_id: &str,
    ) -> Result<Option<Arc<str>>, Unavailable> {
        let asks = self.shared.store.asks_of_generation(generation_id).await?;
        let own = asks.into_iter().rfind(|ask| match &ask.subject {
            AskSubject::Call(call) => *call.tool_call_id == *tool_call_id,
            AskSubject::Step(_) => false,
        });
        Ok(own.map(|own| own.id))
    }

    /// Returns the ask that a call shows of its sub-agent. Refused if it has shown others: an approval
    /// that is sent twice must not answer the next one.
    async fn ask_below(
        &self,
        generation_id: &str,
        tool_call_id: &str,
    ) -> Result<Arc<str>, AskError> {
        let child = child_of(generation_id, tool_call_id);
        let asked = self.shared.store.asks_of_generation(&child).await?;
        let pending = self.pending_asks(generation_id).await?;
        let shown = pending.into_iter().filter(|ask| **ask.waiting_call() == *tool_call_id);
        let open: Vec<_> = shown.map(|ask| ask.ask_id).collect();
        // those of further sub-agents are not among the asks of this one
        let is_known = |id: &Arc<str>| asked.iter().any(|ask| ask.id == *id);
        match asked.as_slice() {
            [] if open.is_empty() => Err(AskError::NotFound),
            [only] if open.iter().all(is_known) => Ok(Arc::clone(&only.id)),
            _ => Err(AskError::Ambiguous { asks: open }),
        }
    }

    /// Returns what a generation waits for, if it is suspended.
    pub async fn pending_asks(&self, generation_id: &str) -> Result<Vec<PendingAsk>, Unavailable> {
        match self.continuable(generation_id).await? {
            Some(found) if found.entry.record.status == GenerationStatus::Suspended => {
                self.open_asks(&found).await
            }
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// Returns the asks of a generation that wait for an answer. Those of a sub-agent are looked up:
    /// the caller's continuation has them until all of them are answered.
    pub(super) async fn open_asks(
        &self,
        found: &Continuable,
    ) -> Result<Vec<PendingAsk>, Unavailable> {
        let mut open = Vec::new();
        for pending in found.continuation.asks() {
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
}

impl From<&IdempotencyKey> for AnswerKey {
    fn from(key: &IdempotencyKey) -> Self {
        // the scope names the user
        let scope = Arc::from(long_hash(&[&key.scope]));
        Self { scope, body: Arc::clone(&key.body_hash) }
    }
}
