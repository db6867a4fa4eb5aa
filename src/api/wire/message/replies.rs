//! Answers of a chat client to what a suspended generation waits for.

use std::collections::HashSet;

use greenroom_actors::agent::tool::ASK_USER;
use greenroom_actors::requests::{ChatReply, Reply};
use serde_json::{Map, Value};

/// Answers in the last message of a chat.
#[derive(Debug, Default, PartialEq)]
pub struct Replies {
    /// Decisions about approvals, and outputs of calls in the last turn.
    pub all: Vec<ChatReply>,
    /// True if they are nothing else than answers. Outputs alone may also be those of tools that
    /// run in the client.
    pub are_answers: bool,
}

/// Returns the answers in the last message, if it is the assistant's.
pub fn replies_of(input: &Value) -> Replies {
    let last = input.as_array().and_then(|messages| messages.last());
    let last = last.filter(|message| message["role"] == "assistant");
    let Some(parts) = last.and_then(|message| message["parts"].as_array()) else {
        return Replies::default();
    };
    let turn = parts.iter().rposition(|part| part["type"] == "step-start").unwrap_or(0);
    let asked: HashSet<&str> = parts.iter().filter_map(asked_call).collect();
    let mut replies = Replies::default();
    for (place, part) in parts.iter().enumerate() {
        let Some(part) = part.as_object().filter(|part| is_tool(part)) else { continue };
        let Some(reply) = reply_of(part, place >= turn) else { continue };
        replies.are_answers |= reply.approval_id.is_some()
            || part["type"] == format!("tool-{ASK_USER}")
            || asked.contains(reply.tool_call_id.as_str());
        replies.all.push(reply);
    }
    replies
}

/// Returns the call that a data part asks about.
fn asked_call(part: &Value) -> Option<&str> {
    let is_ask = part["type"] == "data-ask" || part["type"] == "data-approval";
    part["data"]["toolCallId"].as_str().filter(|_| is_ask)
}

fn is_tool(part: &Map<String, Value>) -> bool {
    let kind = part.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind == "dynamic-tool" || kind.starts_with("tool-"))
}

fn reply_of(part: &Map<String, Value>, is_last_turn: bool) -> Option<ChatReply> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let approval = part.get("approval").and_then(Value::as_object);
    let of_approval = |key: &str| approval.and_then(|approval| approval.get(key));
    let (approval_id, reply) = match part.get("state").and_then(Value::as_str)? {
        "approval-responded" => {
            let approved = of_approval("approved")?.as_bool()?;
            let reason = text(of_approval("reason"));
            (Some(text(of_approval("id"))?), Reply::Decided { approved, reason })
        }
        "output-available" if is_last_turn => {
            (None, Reply::Given(part.get("output").cloned().unwrap_or_default()))
        }
        _ => return None,
    };
    Some(ChatReply { tool_call_id: text(part.get("toolCallId"))?, approval_id, reply })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn responded(id: &str, approval: &Value) -> Value {
        json!({ "type": "tool-refund", "toolCallId": id, "state": "approval-responded",
                "input": {}, "approval": approval })
    }

    fn output(kind: &str, id: &str) -> Value {
        json!({ "type": kind, "toolCallId": id, "state": "output-available", "input": {},
                "output": "blue" })
    }

    fn asking(call_id: &str) -> Value {
        json!({ "type": "data-ask", "id": "ask_1", "data": { "toolCallId": call_id } })
    }

    fn decided(id: &str, ask: &str, approved: bool, reason: Option<&str>) -> ChatReply {
        ChatReply {
            tool_call_id: id.to_owned(),
            approval_id: Some(ask.to_owned()),
            reply: Reply::Decided { approved, reason: reason.map(str::to_owned) },
        }
    }

    fn given(id: &str) -> ChatReply {
        let reply = Reply::Given(json!("blue"));
        ChatReply { tool_call_id: id.to_owned(), approval_id: None, reply }
    }

    #[test]
    fn replies_are_in_the_last_message_if_it_is_the_assistants() {
        let step = json!({ "type": "step-start" });
        let text = json!({ "type": "text", "text": "hm" });
        let yes = responded("c1", &json!({ "id": "ask_1", "approved": true }));
        let no = responded("c2", &json!({ "id": "ask_2", "approved": false, "reason": "dear" }));
        let requested = json!({ "type": "tool-refund", "toolCallId": "c3",
                                "state": "approval-requested", "approval": { "id": "ask_3" } });
        let rows = [
            (vec![text.clone()], vec![], false),
            (vec![requested.clone()], vec![], false),
            (
                vec![step.clone(), yes.clone(), no, requested],
                vec![
                    decided("c1", "ask_1", true, None),
                    decided("c2", "ask_2", false, Some("dear")),
                ],
                true,
            ),
            (vec![output("tool-ask_user", "c4")], vec![given("c4")], true),
            (vec![output("dynamic-tool", "c4")], vec![given("c4")], false),
            (vec![output("tool-a", "c4"), asking("c4")], vec![given("c4")], true),
            (vec![output("tool-a", "c4"), asking("c5")], vec![given("c4")], false),
            // of an earlier turn
            (
                vec![step.clone(), output("tool-a", "c1"), step, output("tool-b", "c2")],
                vec![given("c2")],
                false,
            ),
            // invalid
            (vec![responded("c1", &json!({ "id": "ask_1" }))], vec![], false),
            (vec![responded("c1", &json!({ "approved": true }))], vec![], false),
            (vec![json!(1), output("data-x", "c1")], vec![], false),
        ];
        for (parts, all, are_answers) in rows {
            let messages = json!([{ "role": "assistant", "parts": parts }]);
            assert_eq!(replies_of(&messages), Replies { all, are_answers }, "{messages}");
        }
        let went_on = json!([{ "role": "assistant", "parts": [yes] },
                             { "role": "user", "parts": [text] }]);
        for other in [went_on, json!("hello"), json!([]), json!([1]), json!(null)] {
            assert_eq!(replies_of(&other), Replies::default(), "{other}");
        }
    }
}
