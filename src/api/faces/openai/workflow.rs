//! Completions of workflows: the last message is the input, and the result the answer.

use std::sync::Arc;

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::agent::generation::GenerationEvent;
use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::domain::foreign;
use greenroom_actors::domain::message::{Message, Role};
use greenroom_actors::ports::model::{FinishReason, Usage};
use greenroom_actors::ports::store::{ASK_PREFIX, AskKind};
use greenroom_actors::requests::{ExecutionOutcome, Halted, StartExecution, TraceOrigin};
use serde_json::{Map, Value, json};

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::ids::check_id;
use crate::api::wire::openai::{CompletionBody, messages_of};
use crate::api::workflows::{idempotency, succeeded};

/// Reads the start of an execution. `key` is the `Idempotency-Key`, which is bound to `bytes`, the
/// body.
pub fn read_start(
    definition: &WorkflowDefinition,
    body: CompletionBody,
    conversation_id: Option<String>,
    (key, bytes): (Option<&str>, &[u8]),
    caller: &Caller,
) -> Result<StartExecution, ApiError> {
    body.unsupported.check()?;
    let is_asked = |value: &Option<Value>| {
        value
            .as_ref()
            .is_some_and(|it| !it.is_null() && it.as_array().is_none_or(|it| !it.is_empty()))
    };
    if is_asked(&body.tools) {
        return Err(ApiError::unsupported("tools", "workflows call their own tools only"));
    }
    let is_text = body.response_format.as_ref().is_none_or(|format| {
        format.is_null() || format.get("type").is_some_and(|kind| kind == "text")
    });
    if !is_text {
        return Err(ApiError::unsupported("response_format", "workflows choose their results"));
    }
    let messages = messages_of(&body.messages)?;
    body.user.as_deref().map_or(Ok(()), |user| check_id("user", user))?;
    let input = input_of(&messages, definition)?;
    let user_id = caller.user_id(body.user);
    let owner = (caller, user_id.as_deref());
    let idempotency = idempotency(key, "completion", &definition.id, owner, bytes)?;
    let mut context = Map::new();
    caller.sign(&mut context);
    Ok(StartExecution {
        workflow_id: definition.id.clone(),
        execution_id: None,
        input,
        user_id,
        conversation_id: caller.conversation(conversation_id),
        context,
        idempotency,
        trace: TraceOrigin::New,
    })
}

/// Returns the last message of the user as input: its JSON, or `{"text": ...}`.
fn input_of(messages: &[Message], definition: &WorkflowDefinition) -> Result<Value, ApiError> {
    let last = messages.iter().rev().find(|message| message.role == Role::User);
    let last = last.ok_or_else(|| ApiError::body("messages", "need one of the user"))?;
    let text = last.plain_text();
    let takes = |input: &Value| definition.admits_input(input);
    let written = foreign::from_str(&text).ok().filter(takes);
    Ok(written.unwrap_or_else(|| json!({ "text": text })))
}

/// The answer of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowAnswer {
    pub execution_id: Arc<str>,
    /// The result: a text as it is, another value as JSON. Empty while it waits.
    pub text: String,
    /// Asks that the execution waits for.
    pub asks: Vec<PendingAsk>,
}

/// Returns the answer of an execution that has halted, or its failure.
pub fn answer_of(outcome: ExecutionOutcome) -> Result<WorkflowAnswer, ApiError> {
    let outcome = succeeded(outcome)?;
    let text = match (outcome.result(), &outcome.halted) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(result), _) => result.to_string(),
        (None, Halted::Ended { outcome, .. }) => {
            let reason = outcome.cancel_reason().map(|reason| format!(": {reason}"));
            format!("The execution was cancelled{}", reason.unwrap_or_default())
        }
        (None, Halted::Suspended { .. }) => String::new(),
    };
    let asks = match &outcome.halted {
        Halted::Suspended { suspension, others } => {
            let others = others.as_ref().map_or(&[][..], |others| &others.suspensions);
            std::iter::once(&**suspension).chain(others).map(ask_of).collect()
        }
        Halted::Ended { .. } => Vec::new(),
    };
    Ok(WorkflowAnswer { execution_id: Arc::from(outcome.execution_id.as_str()), text, asks })
}

/// Shows a suspension as an ask. That of a step is answered in the inbox, a pause is only resumed.
fn ask_of(suspension: &Suspension) -> PendingAsk {
    let id = suspension.id.as_deref().unwrap_or_default();
    let payload = suspension.payload.as_deref().cloned();
    PendingAsk {
        ask_id: if suspension.is_pause() { id.into() } else { format!("{ASK_PREFIX}{id}").into() },
        kind: AskKind::Step,
        tool_call_id: suspension.path.to_string().into(),
        tool_name: Arc::clone(&suspension.step_id),
        input: payload.unwrap_or_default(),
        reason: suspension.reason.to_string(),
        schema: None,
        deadline: suspension.deadline,
        shown_at: None,
        refused: None,
    }
}

impl WorkflowAnswer {
    /// Returns the answer as events, for a stream.
    pub fn events(self) -> Vec<GenerationEvent> {
        let text = (!self.text.is_empty())
            .then(|| GenerationEvent::TextDelta { id: Arc::from("0"), delta: self.text });
        let asks = self.asks.into_iter().map(|ask| GenerationEvent::Ask(Box::new(ask)));
        let finish = GenerationEvent::Finish {
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            stand_in: None,
        };
        text.into_iter().chain(asks).chain([finish]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schema: Option<Value>, body: &Value) -> Result<StartExecution, String> {
        let definition = WorkflowDefinition {
            input_schema: schema,
            ..WorkflowDefinition::new("order", Vec::new())
        };
        let mut whole = json!({ "model": "workflow/order" });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let body: CompletionBody = serde_json::from_value(whole).unwrap();
        let start = read_start(&definition, body, None, (Some("k"), b"{}"), &Caller::unchecked());
        start.map_err(|refusal| refusal.to_string())
    }

    fn asks(text: &str) -> Value {
        json!({ "messages": [
            { "role": "user", "content": "before" },
            { "role": "assistant", "content": "yes?" },
            { "role": "user", "content": text },
        ] })
    }

    #[test]
    fn the_last_message_is_the_input() {
        let rows = [
            (None, "{\"item\":\"lamp\"}", json!({ "item": "lamp" })),
            (None, "a lamp", json!({ "text": "a lamp" })),
            (None, "[1]", json!({ "text": "[1]" })),
            (Some(json!({ "type": "array" })), "[1]", json!([1])),
            (Some(json!({ "enum": ["a", "b"] })), "\"a\"", json!("a")),
            (Some(json!({ "required": ["text"] })), "5", json!({ "text": "5" })),
        ];
        for (schema, text, input) in rows {
            let start = read(schema, &asks(text)).unwrap();
            assert_eq!((start.input, start.workflow_id.as_str()), (input, "order"), "{text}");
            assert!(start.idempotency.is_some());
        }
    }

    #[test]
    fn what_workflows_cannot_do_is_refused() {
        let with = |key: &str, value: Value| {
            let mut body = asks("a");
            body[key] = value;
            body
        };
        let rows = [
            (
                with("tools", json!([{}])),
                "tools is not supported: workflows call their own tools only",
            ),
            (
                with("response_format", json!({ "type": "json_object" })),
                "response_format is not supported: workflows choose their results",
            ),
            (
                json!({ "messages": [{ "role": "system", "content": "a" }] }),
                "Invalid request body: messages: need one of the user",
            ),
        ];
        for (body, text) in rows {
            assert_eq!(read(None, &body).unwrap_err(), text);
        }
        assert!(read(None, &with("tools", json!([]))).is_ok());
        assert!(read(None, &with("response_format", json!({ "type": "text" }))).is_ok());
    }
}
