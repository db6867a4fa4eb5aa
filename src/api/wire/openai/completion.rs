//! A whole completion.

use std::borrow::Cow;

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::agent::generation::Generation;
use greenroom_actors::domain::message::ToolCall;
use greenroom_actors::ports::model::{FinishReason, ToolSpec, Usage};
use greenroom_actors::ports::store::AskKind;
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object as Schema;

use crate::api::wire::Iso;
use crate::api::wire::shape::one_of;

/// Begin of a completion, known before its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionHead {
    pub subject: Subject,
    /// Name of the model in the request.
    pub model: String,
    /// Seconds since 1970.
    pub created_s: i64,
}

/// Kind of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Agent,
    Workflow,
}

/// Answer of `POST /v1/chat/completions`.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletion)]
pub struct CompletionView<'a> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: [ChoiceView<'a>; 1],
    usage: CompletionUsage,
    greenroom: Option<WaitingView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionChoice)]
struct ChoiceView<'a> {
    index: u8,
    message: MessageView<'a>,
    finish_reason: &'static str,
    /// Always null.
    #[schema(value_type = Option<serde_json::Value>)]
    logprobs: (),
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionMessage)]
struct MessageView<'a> {
    role: &'static str,
    /// Null if there are only calls.
    #[schema(required)]
    content: Option<Cow<'a, str>>,
    /// Always null.
    #[schema(value_type = Option<serde_json::Value>)]
    refusal: (),
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallView<'a>>,
}

/// A call of a tool of the client.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionToolCall)]
struct CallView<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionToolFunction)]
struct CalledFunction<'a> {
    name: &'a str,
    /// The arguments as JSON.
    arguments: String,
}

/// Tokens of all turns, and of the agents that were asked.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(super) struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

/// Member beside those of OpenAI, only while people are asked.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionWaiting)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitingView<'a> {
    status: &'static str,
    generation_id: Option<&'a str>,
    execution_id: Option<&'a str>,
    asks: Vec<WaitingAsk<'a>>,
}

/// An ask, which the inbox shows whole.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionAsk)]
#[serde(rename_all = "camelCase")]
struct WaitingAsk<'a> {
    ask_id: &'a str,
    #[schema(schema_with = kinds)]
    kind: &'static str,
    /// Text for people.
    reason: &'a str,
    deadline: Option<Iso>,
}

fn kinds() -> Schema {
    one_of([AskKind::Approval, AskKind::Input, AskKind::Step].map(AskKind::as_str))
}

impl<'a> WaitingAsk<'a> {
    fn of(ask: &'a PendingAsk) -> Self {
        let (kind, deadline) = (ask.kind.as_str(), ask.deadline.map(Iso));
        Self { ask_id: &ask.ask_id, kind, reason: &ask.reason, deadline }
    }
}

impl CompletionHead {
    /// Returns the id of a completion, from that of its generation or execution.
    pub(super) fn id_of(id: &str) -> String {
        format!("chatcmpl-{id}")
    }

    /// Shows what is waited for; `None` if that is nothing.
    pub(super) fn waiting<'a>(
        &self,
        id: &'a str,
        asks: &'a [PendingAsk],
    ) -> Option<WaitingView<'a>> {
        let (generation_id, execution_id) = match self.subject {
            Subject::Agent => (Some(id), None),
            Subject::Workflow => (None, Some(id)),
        };
        let asks = asks.iter().map(WaitingAsk::of).collect();
        let waiting = WaitingView { status: "suspended", generation_id, execution_id, asks };
        (!waiting.asks.is_empty()).then_some(waiting)
    }
}

impl<'a> CompletionView<'a> {
    /// Shows the answer of an agent; `client_tools` are those of the request.
    pub fn of_generation(
        head: &'a CompletionHead,
        generation: &'a Generation,
        client_tools: &[ToolSpec],
    ) -> Self {
        let is_clients = |call: &&ToolCall| client_tools.iter().any(|it| it.name == call.tool_name);
        // while it waits for a person it is not the client's turn: what it sent then would be another
        // generation, which asks again
        let calls: &[_] = if generation.asks.is_empty() { &generation.tool_calls } else { &[] };
        let calls = calls.iter().filter(is_clients);
        let text = match &generation.object {
            Some(object) => Cow::Owned(object.to_string()),
            None => Cow::Borrowed(&*generation.text),
        };
        let answer = Answer {
            id: &generation.id,
            text,
            calls: calls.map(CallView::of).collect(),
            finish_reason: generation.finish_reason,
            usage: generation.usage,
            asks: &generation.asks,
        };
        Self::of(head, answer)
    }

    /// Shows the result of a workflow as the text of the answer, or what it waits for.
    pub fn of_execution(
        head: &'a CompletionHead,
        id: &'a str,
        text: String,
        asks: &'a [PendingAsk],
    ) -> Self {
        let (finish_reason, usage) = (FinishReason::Stop, Usage::default());
        let (text, calls) = (Cow::Owned(text), Vec::new());
        Self::of(head, Answer { id, text, calls, finish_reason, usage, asks })
    }

    fn of(head: &'a CompletionHead, answer: Answer<'a>) -> Self {
        let Answer { id, text, calls, finish_reason, usage, asks } = answer;
        let finish_reason = finish_reason_of(finish_reason, !calls.is_empty(), !asks.is_empty());
        let content = match (waiting_text(asks), text.is_empty() && !calls.is_empty()) {
            (Some(waiting), _) if text.is_empty() => Some(Cow::Owned(waiting)),
            (Some(waiting), _) => Some(Cow::Owned(format!("{text}\n\n{waiting}"))),
            (None, true) => None,
            (None, false) => Some(text),
        };
        let message = MessageView { role: "assistant", content, refusal: (), tool_calls: calls };
        Self {
            id: CompletionHead::id_of(id),
            object: "chat.completion",
            created: head.created_s,
            model: &head.model,
            choices: [ChoiceView { index: 0, message, finish_reason, logprobs: () }],
            usage: usage.into(),
            greenroom: head.waiting(id, asks),
        }
    }
}

/// Answer of an agent or a workflow.
struct Answer<'a> {
    id: &'a str,
    text: Cow<'a, str>,
    /// Calls for the client to make.
    calls: Vec<CallView<'a>>,
    finish_reason: FinishReason,
    usage: Usage,
    asks: &'a [PendingAsk],
}

impl<'a> CallView<'a> {
    fn of(call: &'a ToolCall) -> Self {
        let ToolCall { tool_call_id: id, tool_name: name, input } = call;
        let function = CalledFunction { name, arguments: arguments_of(input) };
        Self { id, r#type: "function", function }
    }
}

/// Returns arguments as text: what the model wrote, if that is no JSON.
pub(super) fn arguments_of(input: &serde_json::Value) -> String {
    input.as_str().map_or_else(|| input.to_string(), str::to_owned)
}

/// Returns the text for people who are asked something; `None` if they are not.
pub(super) fn waiting_text(asks: &[PendingAsk]) -> Option<String> {
    let lines: Vec<_> = asks.iter().map(|ask| format!("Waiting: {}", ask.reason)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Names a finish reason. Clients expect calls where it is `tool_calls`: a run that ends after calls
/// of the agent's own tools has reached a limit.
pub(super) fn finish_reason_of(reason: FinishReason, calls: bool, waits: bool) -> &'static str {
    match reason {
        _ if calls => "tool_calls",
        _ if waits => "stop",
        FinishReason::Length | FinishReason::ToolCalls => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop | FinishReason::Error | FinishReason::Other => "stop",
    }
}

impl From<Usage> for CompletionUsage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens,
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached_input_tokens },
            completion_tokens_details: CompletionDetails {
                reasoning_tokens: usage.reasoning_tokens,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::wire::openai::samples::{ask, call, head, tool};

    fn shown(generation: &Generation) -> Value {
        let head = head(Subject::Agent);
        let tools = [tool("map")];
        serde_json::to_value(CompletionView::of_generation(&head, generation, &tools)).unwrap()
    }

    #[test]
    fn a_text_is_the_content() {
        let usage = Usage {
            prompt_tokens: 5,
            completion_tokens: 3,
            total_tokens: 8,
            cached_input_tokens: 2,
            reasoning_tokens: 1,
        };
        let generation = Generation {
            id: "g".to_owned(),
            text: "hi".to_owned(),
            usage,
            ..Generation::default()
        };
        let expected = json!({
            "id": "chatcmpl-g",
            "object": "chat.completion",
            "created": 1,
            "model": "desk",
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": "hi", "refusal": null },
                "finish_reason": "stop",
                "logprobs": null,
            }],
            "usage": {
                "prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8,
                "prompt_tokens_details": { "cached_tokens": 2 },
                "completion_tokens_details": { "reasoning_tokens": 1 },
            },
        });
        assert_eq!(shown(&generation), expected);
    }

    #[test]
    fn only_calls_of_the_clients_tools_are_shown() {
        let calls = vec![call("c1", "add", json!({})), call("c2", "map", json!({ "n": 1 }))];
        let generation = Generation {
            tool_calls: calls,
            finish_reason: FinishReason::ToolCalls,
            ..Generation::default()
        };
        let shown = &shown(&generation)["choices"][0];
        let expected = json!([{
            "id": "c2", "type": "function", "function": { "name": "map", "arguments": "{\"n\":1}" },
        }]);
        assert_eq!(shown["message"]["tool_calls"], expected);
        assert_eq!(
            (&shown["message"]["content"], &shown["finish_reason"]),
            (&json!(null), &json!("tool_calls"))
        );
    }

    #[test]
    fn every_end_has_a_reason_that_clients_know() {
        let own = vec![call("c1", "add", json!({}))];
        let rows = [
            (FinishReason::Stop, Vec::new(), "stop"),
            (FinishReason::Length, Vec::new(), "length"),
            (FinishReason::ContentFilter, Vec::new(), "content_filter"),
            // the run reached its limit of turns
            (FinishReason::ToolCalls, own, "length"),
            (FinishReason::Other, Vec::new(), "stop"),
        ];
        for (finish_reason, tool_calls, expected) in rows {
            let generation = Generation { finish_reason, tool_calls, ..Generation::default() };
            assert_eq!(shown(&generation)["choices"][0]["finish_reason"], expected);
        }
    }

    #[test]
    fn what_waits_is_text_and_data() {
        let generation = Generation {
            id: "g".to_owned(),
            text: "One moment.".to_owned(),
            finish_reason: FinishReason::ToolCalls,
            asks: vec![ask("ask_1", "Refund 5?")],
            ..Generation::default()
        };
        let shown = shown(&generation);
        let choice = &shown["choices"][0];
        assert_eq!(choice["message"]["content"], "One moment.\n\nWaiting: Refund 5?");
        assert_eq!(choice["finish_reason"], "stop");
        assert_eq!(shown["greenroom"]["generationId"], "g");
        assert_eq!(shown["greenroom"]["asks"][0]["askId"], "ask_1");

        let (head, asks) = (head(Subject::Workflow), [ask("ask_2", "Pay?")]);
        let view = CompletionView::of_execution(&head, "x", String::new(), &asks);
        let shown = serde_json::to_value(view).unwrap();
        assert_eq!(shown["choices"][0]["message"]["content"], "Waiting: Pay?");
        assert_eq!(
            (&shown["greenroom"]["executionId"], &shown["greenroom"]["generationId"]),
            (&json!("x"), &json!(null))
        );
    }
}
