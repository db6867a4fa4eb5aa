//! Rules of generations that are put down and taken up: what is kept, which calls wait, and what
//! answers do. No actor, no clock, no I/O.

mod asking;
mod awaited;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::ask::OnTimeout;
use crate::agent::outcome::PendingAsk;
use crate::domain::message::{Message, Part, ToolApproval, ToolCall};
use crate::ports::model::{ModelOptions, Usage};
use crate::ports::store::{ApprovedTools, GenerationRecord};
use crate::requests::forget_operation;

pub(crate) use self::asking::answer_of_timeout;
use self::asking::refusal;
pub(super) use self::asking::{ask_id, deadline_of};
pub(crate) use self::awaited::awaited_calls;

use super::memory::RunMemory;
use super::turn::{Bounds, ClientTools};

/// Member of the details of an ask that people may decline to answer.
pub(crate) const CAN_DECLINE: &str = "canDecline";

/// Reason for the calls of a run that is cancelled while it waits.
pub(crate) const CANCELLED: &str = "cancelled";

/// State of a run in front of the calls of its last turn, or of the repair of its object, beside its
/// record and its turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Continuation {
    /// The prompt that the last turn answered, or that of the repair.
    pub(super) messages: Arc<Vec<Message>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) schema: Option<Arc<Value>>,
    pub(super) options: ModelOptions,
    /// Tools that the caller has itself.
    #[serde(default, skip_serializing_if = "ClientTools::is_empty")]
    pub(super) client_tools: ClientTools,
    /// State of the provider in the answer of the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) provider_state: Option<Part>,
    pub(super) bounds: Bounds,
    /// Repairs of the object so far.
    pub(super) repairs: u32,
    /// True if the last turn was rejected, and the model is asked again.
    #[serde(default)]
    pub(super) is_repair: bool,
    /// Calls before those of the last turn, or of the repair.
    pub(super) calls_made: u32,
    pub(crate) context: Arc<Map<String, Value>>,
    pub(crate) depth: u32,
    pub(super) message_id: String,
    pub(crate) is_chat: bool,
    /// Bytes left for answers of the model.
    pub(super) answer_left: usize,
    /// Bytes left for results of tools.
    pub(super) results_left: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<RunMemory>,
    pub(super) usage: Usage,
    /// Time that the run has worked, as far as that is recorded; not the time that it waited.
    #[serde(default)]
    pub(super) worked_ms: u64,
    /// Times that calls were interrupted since the run has come further.
    #[serde(default, rename = "crashes")]
    pub(super) interruptions: u32,
    /// Number of the interruptions that were orderly shutdowns.
    #[serde(default)]
    pub(super) shutdowns: u32,
    /// True if the run was cancelled while it waited: it ends once it is taken up, so that its step or
    /// the generation that asked continues.
    #[serde(default)]
    pub(crate) is_cancelled: bool,
    /// True if no call was made since an answer, or since an orderly shutdown between calls.
    #[serde(default)]
    pub(crate) is_released: bool,
    /// The generation that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<Arc<str>>,
    /// Calls of the last turn that wait, or have waited, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<OpenCall>,
    /// Approvals of all turns, for the message of the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvals: Vec<ToolApproval>,
    /// Tools that need no further approval in the conversation.
    #[serde(default, skip_serializing_if = "ApprovedTools::is_empty")]
    pub(super) approved_tools: ApprovedTools,
}

/// A call that waits, or has waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenCall {
    /// Position among the calls of the turn.
    pub(super) number: usize,
    pub(crate) tool_call_id: Arc<str>,
    pub(crate) tool_name: Arc<str>,
    pub(crate) state: CallState,
    /// Answers to the tool's own questions, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) answers: Vec<Value>,
    /// Memo of the newest of these questions, for the tool alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) memo: Option<Arc<Value>>,
    /// True if the call has noted where it can continue after an interruption.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_noted: bool,
    /// True once a person has approved the call.
    #[serde(default)]
    pub(super) is_approved: bool,
    /// Subject of the newest approval of a person that the tool has asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approved: Option<Arc<str>>,
    /// [`Continuation::interruptions`] at the newest answer: a later one may have interrupted the
    /// call.
    #[serde(default)]
    pub(super) settled_at: u32,
    /// Number that the next ask of the call gets. Zero in older continuations.
    #[serde(default)]
    pub(super) next_ask: usize,
}

impl OpenCall {
    /// Creates a call of the last turn that waits for nothing.
    pub(super) fn new(number: usize, call: &ToolCall) -> Self {
        Self {
            number,
            tool_call_id: Arc::from(call.tool_call_id.as_str()),
            tool_name: Arc::from(call.tool_name.as_str()),
            state: CallState::Answered,
            answers: Vec::new(),
            memo: None,
            is_noted: false,
            is_approved: false,
            approved: None,
            settled_at: 0,
            next_ask: 0,
        }
    }
}

/// State of a call that waits, or has waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum CallState {
    /// A person is asked.
    Asked(Box<CallAsk>),
    Approved {
        /// New arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    Refused {
        reason: String,
    },
    /// The newest question of the tool is answered.
    Answered,
    /// The generation of a sub-agent waits.
    Child {
        generation_id: Arc<str>,
        asks: Vec<PendingAsk>,
        is_ready: bool,
    },
}

/// The question about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallAsk {
    pub(crate) ask: PendingAsk,
    #[serde(default)]
    pub(crate) on_timeout: OnTimeout,
    #[serde(default)]
    pub(crate) is_editable: bool,
    /// Schema of the tool, as a hash, if the approval of a person counts for the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remembered_schema: Option<Arc<str>>,
    /// Subject of the approval, if the tool has asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Arc<str>>,
    /// Permission that those who approve need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) permission: Option<Arc<str>>,
    /// True if an earlier attempt of the call was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_repetition: bool,
    /// True if people may decline to answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_declinable: bool,
}

/// An answer to the question about a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallAnswer {
    Approved { by: DecidedBy, input: Option<Value> },
    Refused { by: DecidedBy, reason: Option<String> },
    Given(Value),
}

/// Origin of an approval or a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecidedBy {
    Person,
    /// The deadline passed, which concerns this call alone.
    Deadline,
}

impl CallAsk {
    /// Returns a question that is no approval.
    pub(super) fn of(ask: PendingAsk, is_declinable: bool) -> Self {
        let (on_timeout, is_editable, is_repetition) = Default::default();
        let (remembered_schema, subject, permission) = (None, None, None);
        Self {
            ask,
            on_timeout,
            is_editable,
            remembered_schema,
            subject,
            permission,
            is_repetition,
            is_declinable,
        }
    }
}

impl Continuation {
    /// Returns the asks that wait for an answer, those of sub-agents included.
    pub(crate) fn asks(&self) -> Vec<PendingAsk> {
        let mut found = Vec::new();
        for call in &self.calls {
            match &call.state {
                CallState::Asked(asked) => found.push(asked.ask.clone()),
                CallState::Child { asks, is_ready: false, .. } => {
                    // shown at the caller's own call, whose result waits for them
                    found.extend(asks.iter().map(|ask| PendingAsk {
                        shown_at: Some(Arc::clone(&call.tool_call_id)),
                        ..ask.clone()
                    }));
                }
                CallState::Child { is_ready: true, .. }
                | CallState::Approved { .. }
                | CallState::Refused { .. }
                | CallState::Answered => {}
            }
        }
        found
    }

    /// Returns the same without its conversation, in which nothing is stored from now on.
    pub(crate) fn without_memory(self) -> Self {
        Self { memory: None, ..self }
    }

    /// Returns the same without its user, and without the user's conversation.
    pub(crate) fn without_user(self) -> Self {
        let mut continuation = self.without_memory();
        forget_operation(Arc::make_mut(&mut continuation.context));
        continuation
    }

    /// Reads the continuation of a record. A user who was erased from the record is not known here
    /// either.
    pub(crate) fn read(body: &str, record: &GenerationRecord) -> serde_json::Result<Self> {
        let continuation: Self = serde_json::from_str(body)?;
        Ok(match (record.conversation_id.is_none(), &continuation.memory) {
            (true, Some(_)) => continuation.without_user(),
            (true, None) | (false, _) => continuation,
        })
    }

    /// Returns true if a step or another generation waits for the run.
    pub(crate) fn is_awaited(&self, record: &GenerationRecord) -> bool {
        record.origin.is_some() || self.parent.is_some()
    }

    /// Returns the id of the assistant's message.
    pub(crate) fn message_id(&self) -> &str {
        &self.message_id
    }

    /// Returns the generations of sub-agents that the run waits for.
    pub(crate) fn children(&self) -> impl Iterator<Item = Arc<str>> {
        self.calls.iter().filter_map(|call| match &call.state {
            CallState::Child { generation_id, .. } => Some(Arc::clone(generation_id)),
            _ => None,
        })
    }

    /// Returns true if the run can continue.
    pub(crate) fn is_ready(&self) -> bool {
        self.calls.iter().all(|call| match &call.state {
            CallState::Asked(_) | CallState::Child { is_ready: false, .. } => false,
            CallState::Approved { .. }
            | CallState::Refused { .. }
            | CallState::Answered
            | CallState::Child { is_ready: true, .. } => true,
        })
    }

    /// Returns the question of this ask, if it waits for an answer.
    pub(crate) fn asked(&self, ask_id: &str) -> Option<(&OpenCall, &CallAsk)> {
        self.calls.iter().find_map(|call| match &call.state {
            CallState::Asked(asked) if *asked.ask.ask_id == *ask_id => Some((call, &**asked)),
            _ => None,
        })
    }

    /// Takes an answer. Returns false if the ask does not wait for one.
    pub(crate) fn answer(&mut self, ask_id: &str, answer: CallAnswer) -> bool {
        let mut asked = self.calls.iter_mut().filter_map(|call| match &call.state {
            CallState::Asked(asked) if *asked.ask.ask_id == *ask_id => {
                let CallAsk { remembered_schema, subject, is_repetition, .. } = &**asked;
                let noted = (remembered_schema.clone(), subject.clone(), *is_repetition);
                Some((call, noted))
            }
            _ => None,
        });
        let Some((call, (remembered_schema, subject, is_repetition))) = asked.next() else {
            return false;
        };
        call.settled_at = self.interruptions;
        let (state, approved, reason) = match answer {
            CallAnswer::Approved { by, input } => {
                call.is_approved = true;
                if by == DecidedBy::Person {
                    if subject.is_some() {
                        call.put_off(is_repetition);
                    }
                    call.approved = subject.or_else(|| call.approved.take());
                    if let Some(schema) = remembered_schema {
                        self.approved_tools.insert(Arc::clone(&call.tool_name), schema);
                    }
                }
                (CallState::Approved { input }, Some(true), None)
            }
            CallAnswer::Refused { by, reason } => {
                let text = refusal(is_repetition, by, reason.as_deref());
                (CallState::Refused { reason: text }, Some(false), reason)
            }
            CallAnswer::Given(data) => {
                call.answers.push(data);
                (CallState::Answered, None, None)
            }
        };
        call.state = state;
        let approval = self.approvals.iter_mut().find(|it| *it.approval_id == *ask_id);
        if let Some(approval) = approval.filter(|_| approved.is_some()) {
            (approval.approved, approval.reason) = (approved, reason);
        }
        self.is_released = self.is_ready();
        true
    }

    /// Notes that the generation of a sub-agent can continue. Returns false if it is not waited for.
    ///
    /// What was decided is about calls of the sub-agent, whose record has it. The call of this run
    /// was neither approved nor refused: it runs, and its result has the rest.
    pub(crate) fn child_is_ready(&mut self, child: &str) -> bool {
        for call in &mut self.calls {
            if let CallState::Child { generation_id, is_ready, asks } = &mut call.state
                && **generation_id == *child
                && !*is_ready
            {
                *is_ready = true;
                self.approvals.retain(|it| asks.iter().all(|ask| *ask.ask_id != *it.approval_id));
                self.is_released = self.is_ready();
                return true;
            }
        }
        false
    }

    /// Cancels the run, which does not wait any longer. Returns the ids of the asks to withdraw.
    pub(crate) fn cancel(&mut self) -> Vec<Arc<str>> {
        let mut withdrawn = Vec::new();
        for call in &mut self.calls {
            let is_open = match &call.state {
                CallState::Asked(asked) => {
                    withdrawn.push(Arc::clone(&asked.ask.ask_id));
                    true
                }
                CallState::Child { is_ready, .. } => !is_ready,
                CallState::Approved { .. } | CallState::Refused { .. } | CallState::Answered => {
                    false
                }
            };
            if is_open {
                call.state = CallState::Refused { reason: CANCELLED.to_owned() };
            }
        }
        for approval in self.approvals.iter_mut().filter(|it| it.approved.is_none()) {
            (approval.approved, approval.reason) = (Some(false), Some(CANCELLED.to_owned()));
        }
        (self.is_cancelled, self.is_released) = (true, true);
        withdrawn
    }

    /// Takes a note of a call of the last turn, or the memo of its question in place of one.
    pub(super) fn note(
        &mut self,
        number: usize,
        call: &ToolCall,
        (memo, is_noted): (Option<Arc<Value>>, bool),
    ) {
        if let Some(known) = self.calls.iter_mut().find(|known| known.number == number) {
            (known.memo, known.is_noted) = (memo, is_noted);
            return;
        }
        self.calls.push(OpenCall {
            memo,
            is_noted,
            settled_at: self.interruptions,
            ..OpenCall::new(number, call)
        });
    }

    /// Returns a call of the last turn, about to wait, and the number of its ask.
    pub(super) fn waiting_call(&self, number: usize, call: &ToolCall) -> (OpenCall, usize) {
        let known = self.call(number).cloned();
        let known = known.unwrap_or_else(|| OpenCall::new(number, call));
        let asked = known.answers.len() + self.interruptions as usize;
        let ask = known.next_ask.max(asked + usize::from(known.is_approved));
        (OpenCall { next_ask: ask + 1, ..known }, ask)
    }

    /// Returns the state of a call of the last turn that waits, or has waited.
    pub(super) fn call(&self, number: usize) -> Option<&OpenCall> {
        self.calls.iter().find(|call| call.number == number)
    }
}

#[cfg(test)]
mod tests;
