//! Values that tests share.

use std::sync::Arc;

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::domain::message::ToolCall;
use greenroom_actors::ports::model::ToolSpec;
use greenroom_actors::ports::store::AskKind;
use serde_json::{Value, json};

use super::completion::{CompletionHead, Subject};

pub(super) fn head(subject: Subject) -> CompletionHead {
    CompletionHead { subject, model: "desk".to_owned(), created_s: 1 }
}

pub(super) fn tool(name: &str) -> ToolSpec {
    let parameters = json!({ "type": "object" });
    ToolSpec { name: name.to_owned(), description: String::new(), parameters }
}

pub(super) fn call(id: &str, name: &str, input: Value) -> ToolCall {
    ToolCall { tool_call_id: id.to_owned(), tool_name: name.to_owned(), input }
}

pub(super) fn ask(id: &str, reason: &str) -> PendingAsk {
    PendingAsk {
        ask_id: Arc::from(id),
        kind: AskKind::Approval,
        tool_call_id: Arc::from("c1"),
        tool_name: Arc::from("refund"),
        input: json!({}),
        reason: reason.to_owned(),
        schema: None,
        deadline: None,
        shown_at: None,
        refused: None,
    }
}
