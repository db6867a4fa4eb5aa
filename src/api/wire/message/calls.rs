//! Order of tool calls and results that providers require: results follow their calls directly.

use std::collections::BTreeMap;

use greenroom_actors::domain::message::{Message, Part, Role};

use crate::api::error::ApiError;

/// Refuses a result without its call, and a call without its result. With `has_memory`, the call
/// may be in the stored conversation.
pub(super) fn check(key: &str, messages: &[Message], has_memory: bool) -> Result<(), ApiError> {
    // calls without results, with their paths
    let mut open: BTreeMap<&str, String> = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        if message.role != Role::Tool {
            check_all_answered(&open)?;
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
                        return Err(ApiError::body(place(), "no earlier call has this id"));
                    }
                }
                Part::Text { .. }
                | Part::Reasoning { .. }
                | Part::File { .. }
                | Part::ToolApproval(_)
                | Part::ProviderState { .. } => {}
            }
        }
    }
    check_all_answered(&open)
}

fn check_all_answered(open: &BTreeMap<&str, String>) -> Result<(), ApiError> {
    match open.values().next() {
        Some(place) => Err(ApiError::body(place, "the call has no result after it")),
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

    fn message(role: &str, parts: &[Value]) -> Value {
        json!({ "role": role, "content": parts })
    }

    #[test]
    fn calls_and_results_must_match() {
        let user = json!({ "role": "user", "content": "go" });
        let rows = [
            (vec![message("assistant", &[call("a")]), message("tool", &[result("a")])], None),
            (
                vec![
                    message("assistant", &[call("a"), call("b")]),
                    message("tool", &[result("b")]),
                    message("tool", &[result("a")]),
                    user.clone(),
                ],
                None,
            ),
            (vec![message("assistant", &[call("a"), result("a")])], None),
            (
                vec![user.clone(), message("tool", &[result("a")])],
                Some("input[1].content[0].toolCallId: no earlier call has this id"),
            ),
            (
                vec![
                    message("assistant", &[call("a")]),
                    message("tool", &[result("a")]),
                    message("tool", &[result("a")]),
                ],
                Some("input[2].content[0].toolCallId: no earlier call has this id"),
            ),
            (
                vec![message("assistant", &[call("a")])],
                Some("input[0].content[0].toolCallId: the call has no result after it"),
            ),
            (
                vec![message("assistant", &[call("a")]), user, message("tool", &[result("a")])],
                Some("input[0].content[0].toolCallId: the call has no result after it"),
            ),
        ];
        for (messages, refused) in rows {
            let read = messages_of("input", &json!(messages), false);
            let text = read.err().map(|refusal| refusal.to_string());
            let expected = refused.map(|what| format!("Invalid request body: {what}"));
            assert_eq!(text, expected, "{messages:?}");
        }
        let remembered = json!([message("tool", &[result("a")])]);
        assert!(messages_of("input", &remembered, true).is_ok());
    }
}
