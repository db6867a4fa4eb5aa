//! Calls of tools and their results, as providers want them: each call answered right behind it.

use std::collections::BTreeMap;

use greenroom_actors::domain::message::{Message, Part, Role};

use crate::api::error::ApiError;

/// Refuses a result without its call, and a call without its result. With `has_memory`, the
/// call may be part of what the agent remembers.
pub(super) fn check(key: &str, messages: &[Message], has_memory: bool) -> Result<(), ApiError> {
    // ids of calls that wait for their results, with their places
    let mut open: BTreeMap<&str, String> = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        if message.role != Role::Tool {
            all_answered(&open)?;
        }
        for (at, part) in message.parts.iter().enumerate() {
            let place = || format!("{key}[{index}].content[{at}].toolCallId");
            match part {
                Part::ToolCall(call) => {
                    open.insert(&call.tool_call_id, place());
                }
                Part::ToolResult(result) => {
                    let is_known = open.remove(&*result.tool_call_id).is_some();
                    if !is_known && !has_memory {
                        return Err(ApiError::body(place(), "no call before it has this id"));
                    }
                }
                Part::Text { .. }
                | Part::Reasoning { .. }
                | Part::File { .. }
                | Part::ProviderState { .. } => {}
            }
        }
    }
    all_answered(&open)
}

fn all_answered(open: &BTreeMap<&str, String>) -> Result<(), ApiError> {
    match open.values().next() {
        Some(place) => Err(ApiError::body(place, "the call has no result behind it")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::api::wire::message::messages_of;

    fn call(id: &str) -> Value {
        json!({ "type": "tool-call", "toolCallId": id, "toolName": "add", "input": {} })
    }

    fn result(id: &str) -> Value {
        json!({ "type": "tool-result", "toolCallId": id, "toolName": "add", "output": 1 })
    }

    fn said(role: &str, parts: &[Value]) -> Value {
        json!({ "role": role, "content": parts })
    }

    #[test]
    fn calls_and_results_belong_together() {
        let user = json!({ "role": "user", "content": "go" });
        let rows = [
            (vec![said("assistant", &[call("a")]), said("tool", &[result("a")])], None),
            (
                vec![
                    said("assistant", &[call("a"), call("b")]),
                    said("tool", &[result("b")]),
                    said("tool", &[result("a")]),
                    user.clone(),
                ],
                None,
            ),
            (vec![said("assistant", &[call("a"), result("a")])], None),
            (
                vec![user.clone(), said("tool", &[result("a")])],
                Some("input[1].content[0].toolCallId: no call before it has this id"),
            ),
            (
                vec![
                    said("assistant", &[call("a")]),
                    said("tool", &[result("a")]),
                    said("tool", &[result("a")]),
                ],
                Some("input[2].content[0].toolCallId: no call before it has this id"),
            ),
            (
                vec![said("assistant", &[call("a")])],
                Some("input[0].content[0].toolCallId: the call has no result behind it"),
            ),
            (
                vec![said("assistant", &[call("a")]), user, said("tool", &[result("a")])],
                Some("input[0].content[0].toolCallId: the call has no result behind it"),
            ),
        ];
        for (messages, refused) in rows {
            let read = messages_of("input", &json!(messages), false);
            let text = read.err().map(|refusal| refusal.to_string());
            let expected = refused.map(|what| format!("Invalid request body: {what}"));
            assert_eq!(text, expected, "{messages:?}");
        }
        let remembered = json!([said("tool", &[result("a")])]);
        assert!(messages_of("input", &remembered, true).is_ok());
    }
}
