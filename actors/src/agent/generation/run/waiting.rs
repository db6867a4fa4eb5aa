//! Calls that wait for people: the state of the run that is kept, and the asks.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::ask::ToolAsk;
use crate::agent::generation::GenerateError;
use crate::agent::generation::continuation::{
    CAN_DECLINE, CallAsk, CallState, Continuation, OpenCall, ask_id, deadline_of,
};
use crate::agent::generation::idle_end::{IdleEnd, end_and_count};
use crate::agent::generation::tools::{ApprovalAsk, Permission, ToolReturn, Waiting, usage_of};
use crate::agent::generation::turn::Turns;
use crate::agent::outcome::PendingAsk;
use crate::domain::assignment::{AskRules, Assignee};
use crate::domain::failure::shortened;
use crate::domain::message::{ToolApproval, ToolCall};
use crate::domain::time::Timestamp;
use crate::ports::model::Usage;
use crate::ports::store::{
    ASK_REASON_BYTES_MAX, AskChange, AskKind, ContinuationChange, GenerationStatus, NewAsk,
};

use super::Run;
use super::tools::refused;

impl Run {
    /// Returns the state in front of the calls of the last turn, or of the repair.
    pub(super) fn continuation_at(&self, turns: &Turns) -> Continuation {
        Continuation {
            context: Arc::clone(&self.context),
            depth: self.depth,
            message_id: self.message_id.clone(),
            is_chat: self.is_chat,
            answer_left: self.answer.bytes_left(),
            results_left: self.results_left,
            memory: self.memory.clone(),
            usage: self.transcript.usage(),
            worked_ms: self.worked.ms(),
            parent: self.parent.clone(),
            approvals: self.approvals.clone(),
            approved_tools: self.approved_tools.clone(),
            ..turns.continuation()
        }
    }

    /// Returns what earlier answers and interruptions have to do with a call of the last turn.
    pub(super) fn permission(&self, tool_name: &str, call: Option<&OpenCall>) -> Permission {
        let interruptions =
            self.continuation.as_ref().map_or(0, |continuation| continuation.interruptions);
        let is_settled = call.is_some_and(|call| call.settled_at == interruptions);
        let is_noted = call.is_some_and(|call| call.is_noted);
        Permission {
            is_approved: call.is_some_and(|call| call.is_approved),
            approved_schema: self.approved_tools.get(tool_name).cloned(),
            is_interrupted: self.is_interrupted && !is_settled && !is_noted,
        }
    }

    /// Fails a call with whose asks the run would wait for too many, beside those that it waits for.
    /// Those of a sub-agent are withdrawn.
    pub(super) async fn within_asks(
        &self,
        asks: usize,
        returned: ToolReturn,
    ) -> Result<ToolReturn, GenerateError> {
        let asks_max = self.deps.tool_limits.asks_max;
        let waits = returned.waits.as_deref();
        let Some(waits) = waits.filter(|waits| asks + waits.asks() > asks_max) else {
            return Ok(returned);
        };
        let why = format!(
            "not asked: more than {asks_max} questions would wait for people at once; ask fewer, or \
             wait for their answers"
        );
        let usage = match waits {
            Waiting::Child { generation_id, .. } => {
                let (status, why) = (GenerationStatus::Cancelled, why.clone());
                let at = self.deps.clock.now();
                let end = IdleEnd { from: None, revision: None, status, error: None, why, at };
                let ended = end_and_count(&self.deps, generation_id, end);
                self.recording.during(ended).await?;
                usage_of(&self.deps, generation_id).await
            }
            Waiting::Approval(_) | Waiting::Input(_) => Usage::default(),
        };
        Ok(ToolReturn { usage, ..refused(why) })
    }

    /// Notes the calls of the last turn that wait. Returns the changes of asks.
    pub(super) fn open_calls(&mut self, waiting: Vec<(usize, Waiting)>) -> Vec<AskChange> {
        let now = self.deps.clock.now();
        let turn = self.transcript.len();
        let Some(step) = self.transcript.last() else { return Vec::new() };
        let Some(continuation) = &mut self.continuation else { return Vec::new() };
        let (mut calls, mut asks) = (Vec::new(), Vec::new());
        for (number, waits) in waiting {
            let Some(call) = step.tool_calls.get(number) else { continue };
            let (known, ask) = continuation.waiting_call(number, call);
            let run = (&*self.id, self.record.start_time);
            let opened = Opened { ask_id: ask_id(run, turn, number, ask), now, call };
            let memo = match &waits {
                Waiting::Input(question) => question.memo.clone().map(Arc::new),
                Waiting::Approval(_) | Waiting::Child { .. } => known.memo.clone(),
            };
            let (state, ask) = opened.state(waits);
            asks.extend(ask.map(AskChange::Open));
            // while it waits, an interruption does not concern it
            calls.push(OpenCall { state, memo, is_noted: false, ..known });
        }
        continuation.calls = calls;
        continuation.is_released = false;
        let shown = continuation.asks();
        for ask in shown.iter().filter(|ask| ask.kind == AskKind::Approval) {
            let known = |it: &ToolApproval| it.approval_id == *ask.ask_id;
            if !self.approvals.iter().any(known) {
                self.approvals.push(ToolApproval {
                    approval_id: ask.ask_id.to_string(),
                    tool_call_id: ask.waiting_call().to_string(),
                    approved: None,
                    reason: Some(ask.reason.clone()),
                });
            }
        }
        continuation.approvals.clone_from(&self.approvals);
        continuation.worked_ms = self.worked.ms();
        self.count_usage();
        asks
    }

    /// Returns the ids of calls that wait, for the message of the conversation.
    pub(super) fn open_call_ids(&self) -> Vec<Arc<str>> {
        let calls = self.continuation.iter().flat_map(|continuation| &continuation.calls);
        calls.map(|call| Arc::clone(&call.tool_call_id)).collect()
    }

    /// Returns the change that stores the continuation.
    pub(super) fn put_continuation(&mut self, asks: Vec<AskChange>) -> ContinuationChange {
        self.forget_user_if_erased();
        match self.continuation.as_ref().map(serde_json::to_string) {
            Some(Ok(body)) => ContinuationChange::Put { body: Arc::from(body), asks },
            Some(Err(error)) => {
                log::error!("the continuation of generation {} cannot be stored: {error}", self.id);
                ContinuationChange::Keep
            }
            None => ContinuationChange::Keep,
        }
    }
}

/// A call that begins to wait.
struct Opened<'a> {
    ask_id: Arc<str>,
    now: Timestamp,
    call: &'a ToolCall,
}

impl Opened<'_> {
    /// Returns the state of the call, and its ask, unless a sub-agent has it.
    fn state(&self, waits: Waiting) -> (CallState, Option<NewAsk>) {
        match waits {
            Waiting::Child { generation_id, asks } => {
                (CallState::Child { generation_id, asks, is_ready: false }, None)
            }
            Waiting::Approval(approval) => {
                let ApprovalAsk { reason, to, deadline, on_timeout, is_editable, .. } = approval;
                let ApprovalAsk { remembered_schema, subject, permission, is_repetition, .. } =
                    approval;
                let deadline = deadline_of(self.now, deadline);
                let ask = self.ask(AskKind::Approval, reason, None, deadline);
                let new = self.new_ask(
                    &ask,
                    to,
                    json!({
                        "input": ask.input, "edit": is_editable, "onTimeout": on_timeout
                    }),
                );
                let asked = CallAsk {
                    on_timeout,
                    is_editable,
                    remembered_schema,
                    subject,
                    permission,
                    is_repetition,
                    ..CallAsk::of(ask, false)
                };
                (CallState::Asked(Box::new(asked)), Some(new))
            }
            Waiting::Input(question) => {
                let ToolAsk { question, schema, to, deadline, is_declinable, .. } = question;
                let reason = shortened(&question, ASK_REASON_BYTES_MAX).to_owned();
                let deadline = deadline_of(self.now, deadline);
                let ask = self.ask(AskKind::Input, reason, schema, deadline);
                let mut details = json!({ "input": ask.input, "schema": ask.schema });
                if is_declinable {
                    details[CAN_DECLINE] = Value::Bool(true);
                }
                let new = self.new_ask(&ask, to, details);
                (CallState::Asked(Box::new(CallAsk::of(ask, is_declinable))), Some(new))
            }
        }
    }

    fn ask(
        &self,
        kind: AskKind,
        reason: String,
        schema: Option<Value>,
        deadline: Option<Timestamp>,
    ) -> PendingAsk {
        PendingAsk {
            ask_id: Arc::clone(&self.ask_id),
            kind,
            tool_call_id: Arc::from(self.call.tool_call_id.as_str()),
            tool_name: Arc::from(self.call.tool_name.as_str()),
            input: self.call.input.clone(),
            reason,
            schema,
            deadline,
            shown_at: None,
            refused: None,
        }
    }

    fn new_ask(&self, ask: &PendingAsk, to: Vec<Assignee>, details: Value) -> NewAsk {
        NewAsk {
            id: Arc::clone(&ask.ask_id),
            kind: ask.kind,
            place: Arc::clone(&ask.tool_call_id),
            tool_name: Some(Arc::clone(&ask.tool_name)),
            reason: Arc::from(ask.reason.as_str()),
            opened_at: self.now,
            deadline: ask.deadline,
            rules: AskRules { to, ..AskRules::default() },
            next_due: ask.deadline,
            details: Some(Arc::new(details)),
        }
    }
}
