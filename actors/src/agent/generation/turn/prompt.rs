//! Messages of a prompt, and their order.

use crate::domain::message::{Message, Part, Role, ToolResult, for_model, keep_whole_calls};
use crate::ports::model::ModelAnswer;

/// Composes a prompt: instructions with working memory, the caller's system messages, stored
/// messages, the caller's other messages.
pub(in crate::agent::generation) fn compose(
    instructions: Option<String>,
    working_memory: Option<&str>,
    older: Vec<Message>,
    asked: Vec<Message>,
) -> Vec<Message> {
    let own =
        system_text(instructions, working_memory).map(|text| Message::text(Role::System, text));
    let (system, rest): (Vec<_>, Vec<_>) =
        asked.into_iter().partition(|message| message.role == Role::System);
    let mut messages: Vec<_> = own.into_iter().chain(system).chain(older).chain(rest).collect();
    keep_whole_calls(&mut messages);
    for_model(messages)
}

fn system_text(instructions: Option<String>, working_memory: Option<&str>) -> Option<String> {
    let Some(memory) = working_memory.filter(|text| !text.trim().is_empty()) else {
        return instructions;
    };
    let memory = format!("Your working memory of this conversation:\n{memory}");
    Some(match instructions {
        Some(own) => format!("{own}\n\n{memory}"),
        None => memory,
    })
}

/// Returns the messages of a turn with tool calls, for the next question.
pub(super) fn turn(answer: ModelAnswer, results: Vec<ToolResult>) -> [Message; 2] {
    let ModelAnswer { text, reasoning, tool_calls, provider_state, .. } = answer;
    let mut parts = Vec::with_capacity(tool_calls.len() + 3);
    if !reasoning.is_empty() {
        parts.push(Part::Reasoning { text: reasoning });
    }
    if let Some(state) = provider_state {
        parts.push(Part::ProviderState { provider: state.provider, state: state.state });
    }
    if !text.is_empty() {
        parts.push(Part::Text { text });
    }
    parts.extend(tool_calls.into_iter().map(Part::ToolCall));
    let results = results.into_iter().map(Part::ToolResult).collect();
    [
        Message { id: None, role: Role::Assistant, parts },
        Message { id: None, role: Role::Tool, parts: results },
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::message::{ToolCall, ToolOutcome};

    fn said(messages: &[Message]) -> Vec<(Role, String)> {
        messages.iter().map(|message| (message.role, message.plain_text())).collect()
    }

    #[test]
    fn messages_are_in_order() {
        let asked = || vec![Message::text(Role::User, "q"), Message::text(Role::System, "theirs")];
        let older = || vec![Message::text(Role::User, "before")];
        let memory = "Your working memory of this conversation:\nlikes tea";
        let rows = [
            ("no instructions", None, None, None),
            ("instructions", Some("own"), None, Some("own".to_owned())),
            ("memory", None, Some("likes tea"), Some(memory.to_owned())),
            ("both", Some("own"), Some("likes tea"), Some(format!("own\n\n{memory}"))),
            ("blank memory", Some("own"), Some(" "), Some("own".to_owned())),
        ];
        for (name, instructions, memory, system) in rows {
            let made = compose(instructions.map(str::to_owned), memory, older(), asked());
            let system = system.into_iter().chain(["theirs".to_owned()]);
            let expected: Vec<_> = system
                .map(|text| (Role::System, text))
                .chain(["before", "q"].map(|text| (Role::User, text.to_owned())))
                .collect();
            assert_eq!(said(&made), expected, "{name}");
        }
    }

    #[test]
    fn calls_without_results_are_left_out() {
        let call = |id: &str| ToolCall {
            tool_call_id: id.to_owned(),
            tool_name: "add".to_owned(),
            input: json!({}),
        };
        let result = |id: &str| {
            let ToolCall { tool_call_id, tool_name, input } = call(id);
            let outcome = ToolOutcome::Output(json!(1));
            Part::ToolResult(ToolResult { tool_call_id, tool_name, input, outcome })
        };
        let parts = vec![
            Part::ToolCall(call("open")),
            Part::ToolCall(call("whole")),
            result("whole"),
            result("orphan"),
        ];
        let message = Message { id: None, role: Role::Assistant, parts };
        let made = compose(None, None, Vec::new(), vec![message]);
        let parts: Vec<_> = made.into_iter().flat_map(|message| message.parts).collect();
        assert_eq!(parts, [Part::ToolCall(call("whole")), result("whole")]);
    }
}
