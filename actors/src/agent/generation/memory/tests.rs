//! Reading and writing of conversations.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::domain::message::{ToolApproval, ToolCall, ToolOutcome, ToolResult};

/// Parses `id` or `id=text`: `u1` is a user's message, `a1` the assistant's, `s1` a system message;
/// `-` has no id.
fn message(name: &str) -> Message {
    let (id, text) = name.split_once('=').unwrap_or((name, name));
    let role = match id.chars().next() {
        Some('u' | '-') => Role::User,
        Some('a') => Role::Assistant,
        Some('s') => Role::System,
        _ => panic!("{name}"),
    };
    let id = (id != "-").then(|| id.to_owned());
    Message { id, ..Message::text(role, text) }
}

fn stored(name: &str) -> StoredMessage {
    let Message { id, role, parts } = message(name);
    let id = id.unwrap_or_default();
    StoredMessage { id, role, parts, created_at: Timestamp(1), generation_id: None }
}

fn key() -> ConversationKey {
    ConversationKey {
        agent_id: Arc::from("writer"),
        user_id: None,
        conversation_id: Arc::from("talk"),
    }
}

fn remembered(kept: &str, asked: &[Message], sent: Sent) -> Remembered {
    let stored = kept.split_whitespace().map(stored).collect();
    let at = Timestamp(9);
    let (messages, generation_id) = (asked, "g");
    let asked = MemoryInput { messages, sent, context_limit: 4, generation_id, at };
    Remembered::new(key(), None, stored, &asked)
}

/// Returns the older messages, the id to cut after, and the written messages as `id` or `id=text`.
fn shown(memory: Remembered) -> (String, Option<String>, String) {
    let older: Vec<_> = memory.older.iter().filter_map(|message| message.id.clone()).collect();
    let said = vec![Part::Text { text: "said".to_owned() }];
    let ConversationWrite { cut_after, messages, .. } =
        memory.memory.write(said, ApprovedTools::new(), "g", Timestamp(9));
    let written = messages.into_iter().map(|StoredMessage { id, role, parts, .. }| {
        let text = Message { id: None, role, parts }.plain_text().replace('\n', "+");
        if text == id { id } else { format!("{id}={text}") }
    });
    (older.join(" "), cut_after, written.collect::<Vec<_>>().join(" "))
}

/// Name, stored, asked, older, cut after, written.
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, Option<&'a str>, &'a str);

fn assert_remembered((name, kept, asked, older, cut_after, written): Row<'_>, sent: Sent) {
    let asked: Vec<_> = asked.split_whitespace().map(message).collect();
    let given = shown(remembered(kept, &asked, sent));
    let expected = (older.to_owned(), cut_after.map(str::to_owned), written.to_owned());
    assert_eq!(given, expected, "{name}");
}

#[test]
fn a_full_list_is_compared_with_the_stored_messages() {
    let rows = [
        ("the first question", "", "u1", "", None, "u1 g=said"),
        ("the next question", "u1 a1", "u1 a1 u2", "", None, "u2 g=said"),
        ("the newest message alone", "u1 a1", "u2", "u1 a1", None, "u2 g=said"),
        ("the end of the list alone", "u1 a1 u2 a2", "u2 a2 u3", "u1 a1", None, "u3 g=said"),
        ("the answer again", "u1 a1 u2 a2", "u1 a1 u2", "", Some("u2"), "g=said"),
        ("the question changed", "u1 a1", "u1=else", "", Some("u1"), "u1=else g=said"),
        ("an answer is continued", "u1 a1", "u1 a1", "", None, "a1=a1+said"),
        (
            "an answer is continued after a cut",
            "u1 a1 u2 a2",
            "u1 a1",
            "",
            Some("u1"),
            "a1=a1+said",
        ),
        ("without ids", "u1 a1", "-=new", "u1 a1", None, "g-0=new g=said"),
        ("system messages", "", "s1 u1", "", None, "u1 g=said"),
        ("no more than the limit", "u0 a0 u1 a1 u2 a2", "u3", "u1 a1 u2 a2", None, "u3 g=said"),
    ];
    for row in rows {
        assert_remembered(row, Sent::Whole);
    }
}

#[test]
fn new_messages_follow_the_stored_ones() {
    let rows = [
        ("a question", "u1 a1", "u2", "u1 a1", "u2 g=said"),
        ("the same question again", "u1 a1 u2", "u2", "u1 a1", "g=said"),
        ("an answer is continued", "u1 a1", "a1", "u1", "a1=a1+said"),
        ("an answer without its question", "a0 u1 a1", "u2", "u1 a1", "u2 g=said"),
        ("answers alone", "a0 a1", "u2", "", "u2 g=said"),
    ];
    for (name, kept, asked, older, written) in rows {
        assert_remembered((name, kept, asked, older, None, written), Sent::New);
    }
}

#[test]
fn a_chat_that_sends_the_newest_message_alone_may_ask_it_again() {
    let rows = [
        ("a question", "u1 a1", "u2", "u1 a1", None, "u2 g=said"),
        ("the answer again", "u1 a1 u2 a2", "u2", "u1 a1", Some("u2"), "g=said"),
        ("an earlier answer again", "u1 a1 u2 a2", "u1", "", Some("u1"), "g=said"),
        ("the question changed", "u1 a1 u2 a2", "u2=b", "u1 a1", Some("u2"), "u2=b g=said"),
        ("an answer is continued", "u1 a1", "a1", "u1", None, "a1=a1+said"),
    ];
    for row in rows {
        assert_remembered(row, Sent::Newest);
    }
}

#[test]
fn results_of_tools_belong_to_the_answer_before_them() {
    let call =
        ToolCall { tool_call_id: "c1".to_owned(), tool_name: "add".to_owned(), input: json!({}) };
    let result = Part::ToolResult(ToolResult {
        tool_call_id: "c1".to_owned(),
        tool_name: "add".to_owned(),
        input: json!({}),
        outcome: ToolOutcome::Output(json!(1)),
    });
    let tool = Message { id: None, role: Role::Tool, parts: vec![result.clone()] };
    let called = Message {
        id: Some("a1".to_owned()),
        role: Role::Assistant,
        parts: vec![Part::ToolCall(call.clone())],
    };
    let write = |asked: &[Message]| {
        let memory = remembered("", asked, Sent::New);
        let write = memory.memory.write(Vec::new(), ApprovedTools::new(), "g", Timestamp(9));
        write.messages.into_iter().map(|message| (message.id, message.parts)).collect::<Vec<_>>()
    };
    let whole = vec![Part::ToolCall(call), result];
    assert_eq!(write(&[called.clone(), tool.clone()]), [("a1".to_owned(), whole)]);
    assert_eq!(write(&[called]), [], "half a call is none");
    assert_eq!(write(&[tool]), [], "a result without a call");
}

#[test]
fn what_a_client_says_of_approvals_is_not_stored() {
    let call = |id: &str| {
        let (tool_call_id, tool_name) = (id.to_owned(), "pay".to_owned());
        Part::ToolCall(ToolCall { tool_call_id, tool_name, input: json!({}) })
    };
    let result = |id: &str| {
        let (tool_call_id, tool_name) = (id.to_owned(), "pay".to_owned());
        let outcome = ToolOutcome::Output(json!(1));
        Part::ToolResult(ToolResult { tool_call_id, tool_name, input: json!({}), outcome })
    };
    let approval = |id: &str, approved| {
        let (approval_id, tool_call_id) = (format!("ask_{id}"), id.to_owned());
        Part::ToolApproval(ToolApproval { approval_id, tool_call_id, approved, reason: None })
    };
    let parts = |of_a: Option<Part>, of_b: Option<Part>, text: &str| {
        let mut parts = vec![call("a")];
        parts.extend(of_a);
        parts.push(call("b"));
        parts.extend(of_b);
        parts.extend([result("a"), result("b"), Part::Text { text: text.to_owned() }]);
        parts
    };
    let kept = StoredMessage {
        parts: parts(Some(approval("a", Some(true))), None, "said"),
        ..stored("a1")
    };
    let rows = [
        (parts(Some(approval("a", Some(false))), Some(approval("b", Some(true))), "said"), None),
        (parts(None, None, "said"), None),
        (
            parts(None, Some(approval("b", Some(true))), "changed"),
            Some(parts(Some(approval("a", Some(true))), None, "changed")),
        ),
    ];
    for (sent, written) in rows {
        let messages =
            [Message { parts: sent, ..message("a1") }, Message::text(Role::User, "go on")];
        let (sent, generation_id, at) = (Sent::New, "g", Timestamp(9));
        let asked = MemoryInput { messages: &messages, sent, context_limit: 4, generation_id, at };
        let memory = Remembered::new(key(), None, vec![kept.clone()], &asked);
        let write =
            memory.memory.write(Vec::new(), ApprovedTools::new(), "g", Timestamp(9)).messages;
        let of_a1 = write.into_iter().find(|message| message.id == "a1");
        assert_eq!(of_a1.map(|message| message.parts), written);
    }
}
