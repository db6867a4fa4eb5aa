//! Messages of a conversation.
//!
//! One form for callers, the store and providers: messages of callers are converted to it, and
//! the wire formats of providers are made from it. The stored form uses the names of the AI SDK's
//! content parts.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
    /// Results of tools.
    Tool,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Id given by the caller or the conversation; `None` for generated messages (instructions,
    /// repairs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub role: Role,
    /// In order. One message of the assistant may hold calls, their results and further text.
    /// [`for_model`] splits it.
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    File {
        media_type: String,
        source: FileSource,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
    },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// A call that waits for an approval, or did.
    ToolApproval(ToolApproval),
    /// State that a provider needs in the next turn (a signature of its reasoning). It is not
    /// sent to other providers.
    ProviderState {
        provider: String,
        state: Value,
    },
}

/// Location of the bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSource {
    Url(String),
    Base64(String),
}

/// A call of a tool, requested by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub tool_call_id: String,
    pub tool_name: String,
    /// The arguments; a string if the model sent something that is not JSON.
    pub input: Value,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    pub tool_call_id: String,
    pub tool_name: String,
    pub input: Value,
    #[serde(flatten)]
    pub outcome: ToolOutcome,
}

/// Request of an approval of a tool call, and the answer once there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolApproval {
    /// Id of the ask.
    pub approval_id: String,
    pub tool_call_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// Text for people, and once it is answered the reason of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Outcome of a tool call: `output`, or `error` with a message fit for models and callers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolOutcome {
    Output(Value),
    Error(String),
    /// The call was not approved and not made; the reason, fit for models and callers.
    Denied(String),
}

impl Message {
    /// Creates a message that consists of text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { id: None, role, parts: vec![Part::Text { text: text.into() }] }
    }

    /// Returns the text parts, joined by newlines.
    pub fn plain_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns `{role, content}`; content is a string if all parts are text, otherwise the parts.
    pub fn to_content_json(&self) -> Value {
        let is_text = self.parts.iter().all(|part| matches!(part, Part::Text { .. }));
        let content = match is_text {
            true => Value::from(self.plain_text()),
            false => json!(self.parts),
        };
        json!({ "role": self.role, "content": content })
    }
}

/// Splits messages into the shape that providers expect: calls in a message of the assistant,
/// their results in a following message of the tools, later text of the assistant in a third.
/// Omits approvals and empty messages.
pub fn for_model(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut made = Vec::new();
    for Message { id, role, parts } in messages {
        let mut current = Message { id, role, parts: Vec::with_capacity(parts.len()) };
        for part in parts {
            if matches!(part, Part::ToolApproval(_)) {
                continue;
            }
            let belongs_to = match (role, &part) {
                (Role::Assistant, Part::ToolResult(_)) => Role::Tool,
                (role, _) => role,
            };
            if belongs_to != current.role {
                let next = Message { id: None, role: belongs_to, parts: Vec::new() };
                made.push(std::mem::replace(&mut current, next));
            }
            current.parts.push(part);
        }
        made.push(current);
    }
    made.retain(|message| !message.parts.is_empty());
    made
}

/// Removes calls without a result and results without a call. An interrupted generation or a
/// client that disconnected leaves the former, a shortened conversation the latter, and providers
/// reject a whole prompt because of one.
pub fn keep_whole_calls(messages: &mut [Message]) {
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    for part in messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::ToolCall(call) => called.insert(call.tool_call_id.as_str()),
            Part::ToolResult(result) => answered.insert(result.tool_call_id.as_str()),
            Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::File { .. }
            | Part::ToolApproval(_)
            | Part::ProviderState { .. } => continue,
        };
    }
    if called == answered {
        return;
    }
    let whole: HashSet<String> =
        called.intersection(&answered).map(|id| (*id).to_owned()).collect();
    for message in messages {
        message.parts.retain(|part| match part {
            Part::ToolCall(call) => whole.contains(&call.tool_call_id),
            Part::ToolResult(result) => whole.contains(&result.tool_call_id),
            Part::ToolApproval(approval) => whole.contains(&approval.tool_call_id),
            Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::File { .. }
            | Part::ProviderState { .. } => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> ToolCall {
        ToolCall {
            tool_call_id: "c1".to_owned(),
            tool_name: "add".to_owned(),
            input: json!({ "n": 1 }),
        }
    }

    fn result(outcome: ToolOutcome) -> ToolResult {
        let ToolCall { tool_call_id, tool_name, input } = call();
        ToolResult { tool_call_id, tool_name, input, outcome }
    }

    #[test]
    fn the_stored_form_reads_back() {
        let text = Part::Text { text: "a".to_owned() };
        let file = |source| Part::File {
            media_type: "image/png".to_owned(),
            source,
            filename: Some("a.png".to_owned()),
        };
        let rows = [
            (text, json!({ "type": "text", "text": "a" })),
            (
                file(FileSource::Url("https://a.example/a.png".to_owned())),
                json!({ "type": "file", "mediaType": "image/png",
                        "source": { "url": "https://a.example/a.png" }, "filename": "a.png" }),
            ),
            (
                Part::ToolCall(call()),
                json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "add",
                        "input": { "n": 1 } }),
            ),
            (
                Part::ToolResult(result(ToolOutcome::Output(json!(2)))),
                json!({ "type": "tool-result", "toolCallId": "c1", "toolName": "add",
                        "input": { "n": 1 }, "output": 2 }),
            ),
            (
                Part::ToolResult(result(ToolOutcome::Error("no".to_owned()))),
                json!({ "type": "tool-result", "toolCallId": "c1", "toolName": "add",
                        "input": { "n": 1 }, "error": "no" }),
            ),
        ];
        for (part, stored) in rows {
            assert_eq!(serde_json::to_value(&part).unwrap(), stored);
            assert_eq!(serde_json::from_value::<Part>(stored).unwrap(), part);
        }
    }

    #[test]
    fn a_message_with_tool_calls_is_split_for_the_model() {
        let result = Part::ToolResult(result(ToolOutcome::Output(json!(2))));
        let done = Part::Text { text: "done".to_owned() };
        let run = Message {
            id: Some("m1".to_owned()),
            role: Role::Assistant,
            parts: vec![Part::ToolCall(call()), result.clone(), done.clone()],
        };
        let empty = Message { id: None, role: Role::User, parts: Vec::new() };
        let made = for_model([Message::text(Role::User, "add"), run, empty]);
        let shape: Vec<_> = made.iter().map(|message| (message.role, &message.parts)).collect();
        let expected = [
            (Role::User, &vec![Part::Text { text: "add".to_owned() }]),
            (Role::Assistant, &vec![Part::ToolCall(call())]),
            (Role::Tool, &vec![result]),
            (Role::Assistant, &vec![done]),
        ];
        assert_eq!(shape, expected);
    }

    #[test]
    fn content_of_text_alone_is_a_string() {
        let message = Message::text(Role::User, "hi");
        assert_eq!(message.to_content_json(), json!({ "role": "user", "content": "hi" }));
        let called =
            Message { id: None, role: Role::Assistant, parts: vec![Part::ToolCall(call())] };
        assert_eq!(called.to_content_json()["content"][0]["type"], "tool-call");
    }
}
