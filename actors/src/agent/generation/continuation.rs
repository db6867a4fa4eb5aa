//! Rules of generations that are put down and taken up: what is kept, which calls wait, and what
//! answers do. No actor, no clock, no I/O.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::ask::OnTimeout;
use crate::agent::outcome::PendingAsk;
use crate::domain::hash::long_hash;
use crate::domain::message::{Message, Part, ToolApproval};
use crate::domain::principal::Principal;
use crate::domain::time::Timestamp;
use crate::ports::model::{ModelOptions, Usage};
use crate::ports::store::ASK_PREFIX;

use super::memory::ContinuedMemory;
use super::turn::Bounds;

/// State of a run in front of the calls of its last turn, beside its record and its turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Continuation {
    /// The prompt that the last turn answered.
    pub(super) messages: Arc<Vec<Message>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) schema: Option<Arc<Value>>,
    pub(super) options: ModelOptions,
    /// State of the provider in the answer of the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) provider_state: Option<Part>,
    pub(super) bounds: Bounds,
    /// Repairs of the object so far.
    pub(super) repairs: u32,
    /// Calls before those of the last turn.
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
    pub(super) memory: Option<ContinuedMemory>,
    pub(super) usage: Usage,
    /// Times that the run was interrupted without having come further.
    #[serde(default)]
    pub(super) crashes: u32,
    /// True if nothing has happened since an answer or an orderly shutdown.
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
    /// Tools of which a call was approved earlier in the conversation.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) remembered: BTreeSet<String>,
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
    /// True once a person has approved the call.
    #[serde(default)]
    pub(super) is_approved: bool,
    /// [`Continuation::crashes`] at the newest answer: a later crash may have interrupted the call.
    #[serde(default)]
    pub(super) settled_at: u32,
}

/// State of a call that waits, or has waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum CallState {
    /// A person is asked.
    Asked(CallAsk),
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
}

/// An answer to the question about a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallAnswer {
    Approved { input: Option<Value> },
    Refused { by: Option<Arc<Principal>>, reason: Option<String> },
    Given(Value),
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
            CallState::Asked(asked) if *asked.ask.ask_id == *ask_id => Some((call, asked)),
            _ => None,
        })
    }

    /// Takes an answer. Returns false if the ask does not wait for one.
    pub(crate) fn answer(&mut self, ask_id: &str, answer: CallAnswer) -> bool {
        let is_asked = |call: &&mut OpenCall| match &call.state {
            CallState::Asked(asked) => *asked.ask.ask_id == *ask_id,
            _ => false,
        };
        let Some(call) = self.calls.iter_mut().find(is_asked) else { return false };
        call.settled_at = self.crashes;
        let (state, approved, reason) = match answer {
            CallAnswer::Approved { input } => {
                call.is_approved = true;
                (CallState::Approved { input }, Some(true), None)
            }
            CallAnswer::Refused { by, reason } => {
                let text = refusal(by.as_deref(), reason.as_deref());
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
    pub(crate) fn child_is_ready(&mut self, child: &str) -> bool {
        for call in &mut self.calls {
            if let CallState::Child { generation_id, is_ready, .. } = &mut call.state
                && **generation_id == *child
                && !*is_ready
            {
                *is_ready = true;
                let shown = self.approvals.iter_mut();
                for approval in shown.filter(|it| *it.tool_call_id == *call.tool_call_id) {
                    approval.approved = Some(true);
                }
                self.is_released = self.is_ready();
                return true;
            }
        }
        false
    }

    /// Returns the state of a call of the last turn that waits, or has waited.
    pub(super) fn call(&self, number: usize) -> Option<&OpenCall> {
        self.calls.iter().find(|call| call.number == number)
    }
}

/// Returns what the model reads about a refusal.
fn refusal(by: Option<&Principal>, reason: Option<&str>) -> String {
    let by = by.map(|by| format!(" by {}", by.id)).unwrap_or_default();
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("refused{by}: {reason}"),
        None => format!("refused{by}"),
    }
}

/// Returns the id of an ask: the same if the turn is repeated after a crash, another one for each
/// question of a call, and for a run that began anew under the id of one that had ended.
pub(super) fn ask_id(
    (generation_id, began): (&str, Timestamp),
    turn: usize,
    number: usize,
    questions: usize,
) -> Arc<str> {
    let place = [turn, number, questions].map(|place| place.to_string());
    let began = began.0.to_string();
    let hash = long_hash(&[generation_id, &began, &place[0], &place[1], &place[2]]);
    Arc::from(format!("{ASK_PREFIX}{hash}"))
}

/// Returns the answer that counts once the deadline has passed.
pub(crate) fn answer_of_timeout(on_timeout: OnTimeout) -> CallAnswer {
    match on_timeout {
        OnTimeout::Approve => CallAnswer::Approved { input: None },
        OnTimeout::Refuse => {
            let reason = Some("it was not answered in time".to_owned());
            CallAnswer::Refused { by: None, reason }
        }
    }
}

/// Returns the time at which an ask expires.
pub(super) fn deadline_of(opened_at: Timestamp, after: Option<Duration>) -> Option<Timestamp> {
    let after = i64::try_from(after?.as_millis()).unwrap_or(i64::MAX);
    Some(Timestamp(opened_at.0.saturating_add(after)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ports::store::AskKind;

    fn pending(id: &str, kind: AskKind) -> PendingAsk {
        PendingAsk {
            ask_id: Arc::from(id),
            kind,
            tool_call_id: Arc::from("c1"),
            tool_name: Arc::from("refund"),
            input: json!({ "amount": 1 }),
            reason: "Refund 1?".to_owned(),
            schema: None,
            deadline: None,
            shown_at: None,
        }
    }

    fn open(number: usize, state: CallState) -> OpenCall {
        OpenCall {
            number,
            tool_call_id: Arc::from(format!("c{number}")),
            tool_name: Arc::from("refund"),
            state,
            answers: Vec::new(),
            is_approved: false,
            settled_at: 0,
        }
    }

    fn asked(id: &str, kind: AskKind) -> CallState {
        let ask = pending(id, kind);
        CallState::Asked(CallAsk { ask, on_timeout: OnTimeout::Refuse, is_editable: false })
    }

    fn continuation(calls: Vec<OpenCall>) -> Continuation {
        Continuation {
            messages: Arc::default(),
            schema: None,
            options: ModelOptions::default(),
            provider_state: None,
            bounds: Bounds::default(),
            repairs: 0,
            calls_made: 0,
            context: Arc::default(),
            depth: 0,
            message_id: "m".to_owned(),
            is_chat: false,
            answer_left: 1,
            results_left: 1,
            memory: None,
            usage: Usage::default(),
            crashes: 0,
            is_released: false,
            parent: None,
            calls,
            approvals: Vec::new(),
            remembered: BTreeSet::new(),
        }
    }

    #[test]
    fn a_run_goes_on_once_all_its_asks_are_answered() {
        let child = CallState::Child {
            generation_id: Arc::from("g2"),
            asks: vec![pending("x", AskKind::Approval)],
            is_ready: false,
        };
        let mut kept = continuation(vec![
            open(0, asked("a", AskKind::Approval)),
            open(1, asked("b", AskKind::Input)),
            open(3, child),
        ]);
        let ids = |kept: &Continuation| -> Vec<_> {
            kept.asks().iter().map(|ask| ask.ask_id.to_string()).collect()
        };
        assert_eq!(ids(&kept), ["a", "b", "x"]);
        assert_eq!(kept.asks()[2].shown_at.as_deref(), Some("c3"));

        let by = Some(Arc::new(Principal::verified("lea")));
        let reason = Some("too much".to_owned());
        assert!(kept.answer("a", CallAnswer::Refused { by, reason }));
        assert!(!kept.answer("a", CallAnswer::Approved { input: None }), "once");
        assert!(!kept.answer("x", CallAnswer::Approved { input: None }), "the child's own");
        assert!(!kept.is_ready());
        let refused = CallState::Refused { reason: "refused by lea: too much".to_owned() };
        assert_eq!(kept.calls[0].state, refused);

        assert!(kept.answer("b", CallAnswer::Given(json!("blue"))));
        assert_eq!(kept.calls[1].answers, [json!("blue")]);
        assert!(!kept.is_ready() && !kept.is_released);
        assert!(!kept.child_is_ready("g9"));
        assert!(kept.child_is_ready("g2"));
        assert!(kept.is_ready() && kept.is_released);
        assert!(!kept.child_is_ready("g2"), "once");
        assert_eq!(ids(&kept), [""; 0]);
    }

    #[test]
    fn a_continuation_is_read_as_it_is_written() {
        let calls = vec![
            open(0, asked("a", AskKind::Approval)),
            open(1, CallState::Approved { input: Some(json!({})) }),
            open(2, CallState::Refused { reason: "refused".to_owned() }),
            open(3, CallState::Answered),
        ];
        let kept = continuation(calls);
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<Continuation>(&text).unwrap(), kept);
    }
}
