//! Stored messages as UI messages of the AI SDK, the inverse of [`message`](super::message).

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::domain::message::{
    FileSource, Part, Role, ToolApproval, ToolCall, ToolOutcome, ToolResult,
};
use greenroom_actors::ports::store::{AskKind, StoredMessage};
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::api::wire::Iso;
use crate::api::wire::pending_ask::{ApprovalForm, UiApprovalRequest, UiAsk};
use crate::api::wire::shape::RoleShape;
use crate::api::wire::shape::one_of;

/// A message of a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiMessage)]
pub struct UiMessageView<'a> {
    id: &'a str,
    #[schema(value_type = RoleShape)]
    role: Role,
    parts: Vec<UiPart<'a>>,
    metadata: UiMetadata<'a>,
}

#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiMessageMetadata)]
#[serde(rename_all = "camelCase")]
struct UiMetadata<'a> {
    created_at: Iso,
    generation_id: Option<&'a str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiMessagePart)]
#[serde(untagged)]
enum UiPart<'a> {
    Words(UiWords<'a>),
    File(UiFile<'a>),
    Tool(UiTool<'a>),
    Ask(UiAsk<'a>),
    Approval(UiApprovalRequest<'a>),
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiTextPart)]
struct UiWords<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = words_kind)]
    kind: &'static str,
    text: &'a str,
}

#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiFilePart)]
#[serde(rename_all = "camelCase")]
struct UiFile<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = file_kind)]
    kind: &'static str,
    media_type: &'a str,
    url: String,
    filename: Option<&'a str>,
}

/// A tool call with its approval and its result, if there are any.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiToolPart)]
#[serde(rename_all = "camelCase")]
struct UiTool<'a> {
    /// `tool-` and the name of the tool.
    #[serde(rename = "type")]
    #[schema(pattern = "^tool-")]
    kind: String,
    tool_call_id: &'a str,
    #[schema(schema_with = tool_state)]
    state: &'static str,
    input: &'a Value,
    output: Option<&'a Value>,
    error_text: Option<&'a str>,
    approval: Option<UiApproval<'a>>,
}

/// The request of an approval, and the answer once there is one.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UiApproval)]
struct UiApproval<'a> {
    /// Id of the ask.
    id: &'a str,
    approved: Option<bool>,
    /// Reason of the answer.
    reason: Option<&'a str>,
}

fn words_kind() -> Object {
    one_of(["text", "reasoning"])
}

fn file_kind() -> Object {
    one_of(["file"])
}

fn tool_state() -> Object {
    one_of([
        "input-available",
        "approval-requested",
        "approval-responded",
        "output-available",
        "output-error",
        "output-denied",
    ])
}

impl<'a> UiMessageView<'a> {
    /// Shows a stored message as a chat has it, with what its generation waits for.
    pub fn of(message: &'a StoredMessage, approvals: ApprovalForm, asks: &'a [PendingAsk]) -> Self {
        let mut parts = parts_of(&message.parts, approvals);
        parts.extend(asks.iter().filter_map(|ask| data_of(ask, approvals)));
        Self {
            id: &message.id,
            role: message.role,
            parts,
            metadata: UiMetadata {
                created_at: Iso(message.created_at),
                generation_id: message.generation_id.as_deref(),
            },
        }
    }
}

/// Returns the data part of an ask, unless the state of its tool shows it.
fn data_of(ask: &PendingAsk, approvals: ApprovalForm) -> Option<UiPart<'_>> {
    match (ask.kind, approvals) {
        (AskKind::Approval, ApprovalForm::States) => None,
        (AskKind::Approval, ApprovalForm::Data) => {
            Some(UiPart::Approval(UiApprovalRequest::of(ask)))
        }
        (AskKind::Input | AskKind::Step | AskKind::Function | AskKind::Compensation, _) => {
            Some(UiPart::Ask(UiAsk::of(ask)))
        }
    }
}

/// Converts parts; a call, its approval and its result become one part, at the place of the call.
fn parts_of(parts: &[Part], approvals: ApprovalForm) -> Vec<UiPart<'_>> {
    let mut shown = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Text { text } => shown.push(UiPart::Words(UiWords { kind: "text", text })),
            Part::Reasoning { text } => {
                shown.push(UiPart::Words(UiWords { kind: "reasoning", text }));
            }
            Part::File { media_type, source, filename } => shown.push(UiPart::File(UiFile {
                kind: "file",
                media_type,
                url: url_of(media_type, source),
                filename: filename.as_deref(),
            })),
            Part::ToolCall(call) => shown.push(UiPart::Tool(UiTool::called(call))),
            Part::ToolApproval(approval) => {
                let tool = tool_in(&mut shown, &approval.tool_call_id);
                if let (Some(tool), ApprovalForm::States) = (tool, approvals) {
                    tool.approve(approval);
                }
            }
            Part::ToolResult(result) => match tool_in(&mut shown, &result.tool_call_id) {
                Some(tool) => tool.end(result),
                None => {
                    let mut tool = UiTool::called_for(result);
                    tool.end(result);
                    shown.push(UiPart::Tool(tool));
                }
            },
            // Only for its provider.
            Part::ProviderState { .. } => {}
        }
    }
    shown
}

/// Finds the part of a call.
fn tool_in<'s, 'a>(shown: &'s mut [UiPart<'a>], call_id: &str) -> Option<&'s mut UiTool<'a>> {
    shown.iter_mut().rev().find_map(|part| match part {
        UiPart::Tool(tool) if tool.tool_call_id == call_id => Some(tool),
        _ => None,
    })
}

fn url_of(media_type: &str, source: &FileSource) -> String {
    match source {
        FileSource::Url(url) => url.clone(),
        FileSource::Base64(bytes) => format!("data:{media_type};base64,{bytes}"),
    }
}

impl<'a> UiTool<'a> {
    fn called(call: &'a ToolCall) -> Self {
        Self::new(&call.tool_name, &call.tool_call_id, &call.input)
    }

    fn called_for(result: &'a ToolResult) -> Self {
        Self::new(&result.tool_name, &result.tool_call_id, &result.input)
    }

    fn new(tool_name: &str, tool_call_id: &'a str, input: &'a Value) -> Self {
        Self {
            kind: format!("tool-{tool_name}"),
            tool_call_id,
            state: "input-available",
            input,
            output: None,
            error_text: None,
            approval: None,
        }
    }

    fn approve(&mut self, approval: &'a ToolApproval) {
        let ToolApproval { approval_id: id, approved, reason, .. } = approval;
        self.state = if approved.is_some() { "approval-responded" } else { "approval-requested" };
        // before the answer it is that of the request, which clients do not expect here
        let reason = reason.as_deref().filter(|_| approved.is_some());
        self.approval = Some(UiApproval { id, approved: *approved, reason });
    }

    fn end(&mut self, result: &'a ToolResult) {
        self.input = &result.input;
        match &result.outcome {
            ToolOutcome::Output(output) => {
                (self.state, self.output) = ("output-available", Some(output));
            }
            // clients expect the request that was refused
            ToolOutcome::Denied(_) if self.approval.is_some() => self.state = "output-denied",
            ToolOutcome::Error(error) | ToolOutcome::Denied(error) => {
                (self.state, self.error_text) = ("output-error", Some(error.as_str()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::time::Timestamp;
    use serde_json::{json, to_value};

    use super::*;
    use crate::api::wire::message::messages_of;

    fn call(id: &str) -> ToolCall {
        let (tool_call_id, tool_name) = (id.to_owned(), "add".to_owned());
        ToolCall { tool_call_id, tool_name, input: json!({ "n": 1 }) }
    }

    fn result(id: &str, outcome: ToolOutcome) -> Part {
        let ToolCall { tool_call_id, tool_name, input } = call(id);
        Part::ToolResult(ToolResult { tool_call_id, tool_name, input, outcome })
    }

    fn stored(parts: Vec<Part>) -> StoredMessage {
        StoredMessage {
            id: "m1".to_owned(),
            role: Role::Assistant,
            parts,
            created_at: Timestamp(1_700_000_000_000),
            generation_id: Some("g1".to_owned()),
        }
    }

    fn every_part() -> Vec<Part> {
        let file = |source, filename: Option<&str>| Part::File {
            media_type: "image/png".to_owned(),
            source,
            filename: filename.map(str::to_owned),
        };
        vec![
            Part::Reasoning { text: "hm".to_owned() },
            Part::ToolCall(call("c1")),
            Part::ToolCall(call("c2")),
            Part::ToolCall(call("c3")),
            result("c2", ToolOutcome::Error("no".to_owned())),
            result("c1", ToolOutcome::Output(Value::Null)),
            Part::ProviderState { provider: "p".to_owned(), state: json!("signature") },
            file(FileSource::Url("https://a.example/a.png".to_owned()), Some("a.png")),
            file(FileSource::Base64("AAAA".to_owned()), None),
            Part::Text { text: "done".to_owned() },
        ]
    }

    #[test]
    fn a_message_is_shown_as_a_ui_message() {
        let expected = json!({
            "id": "m1", "role": "assistant",
            "parts": [
                { "type": "reasoning", "text": "hm" },
                { "type": "tool-add", "toolCallId": "c1", "state": "output-available",
                  "input": { "n": 1 }, "output": null },
                { "type": "tool-add", "toolCallId": "c2", "state": "output-error",
                  "input": { "n": 1 }, "errorText": "no" },
                { "type": "tool-add", "toolCallId": "c3", "state": "input-available",
                  "input": { "n": 1 } },
                { "type": "file", "mediaType": "image/png", "url": "https://a.example/a.png",
                  "filename": "a.png" },
                { "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA" },
                { "type": "text", "text": "done" }
            ],
            "metadata": { "createdAt": "2023-11-14T22:13:20.000Z", "generationId": "g1" }
        });
        assert_eq!(
            to_value(UiMessageView::of(&stored(every_part()), ApprovalForm::States, &[])).unwrap(),
            expected
        );
    }

    fn approval(approved: Option<bool>, reason: Option<&str>) -> Part {
        Part::ToolApproval(ToolApproval {
            approval_id: "ask_1".to_owned(),
            tool_call_id: "c1".to_owned(),
            approved,
            reason: reason.map(str::to_owned),
        })
    }

    /// The states that clients of the AI SDK have after the stream.
    #[test]
    fn a_call_that_waits_or_waited_has_its_approval() {
        let requested = || approval(None, Some("Add 1?"));
        let done = |outcome| Some(result("c1", outcome));
        let refused = || done(ToolOutcome::Denied("refused by a person: no".to_owned()));
        let rows = [
            (
                requested(),
                None,
                json!({ "state": "approval-requested", "approval": { "id": "ask_1" } }),
                json!({ "state": "input-available" }),
            ),
            (
                approval(Some(true), None),
                None,
                json!({ "state": "approval-responded",
                        "approval": { "id": "ask_1", "approved": true } }),
                json!({ "state": "input-available" }),
            ),
            (
                approval(Some(true), None),
                done(ToolOutcome::Output(json!(2))),
                json!({ "state": "output-available", "output": 2,
                        "approval": { "id": "ask_1", "approved": true } }),
                json!({ "state": "output-available", "output": 2 }),
            ),
            (
                approval(Some(true), None),
                done(ToolOutcome::Error("broke".to_owned())),
                json!({ "state": "output-error", "errorText": "broke",
                        "approval": { "id": "ask_1", "approved": true } }),
                json!({ "state": "output-error", "errorText": "broke" }),
            ),
            (
                approval(Some(false), Some("no")),
                refused(),
                json!({ "state": "output-denied",
                        "approval": { "id": "ask_1", "approved": false, "reason": "no" } }),
                json!({ "state": "output-error", "errorText": "refused by a person: no" }),
            ),
        ];
        for (approval, result, states, data) in rows {
            let mut parts = vec![Part::ToolCall(call("c1")), approval];
            parts.extend(result);
            let message = stored(parts);
            for (form, expected) in [(ApprovalForm::States, states), (ApprovalForm::Data, data)] {
                let shown = to_value(UiMessageView::of(&message, form, &[])).unwrap();
                let mut tool = shown["parts"][0].as_object().cloned().unwrap();
                for known in ["type", "toolCallId", "input"] {
                    tool.remove(known);
                }
                assert_eq!(Value::Object(tool), expected, "{form:?}");
            }
        }
    }

    #[test]
    fn a_message_ends_with_what_it_waits_for() {
        let asks = [AskKind::Approval, AskKind::Input].map(|kind| PendingAsk {
            ask_id: kind.as_str().into(),
            kind,
            tool_call_id: "c1".into(),
            tool_name: "add".into(),
            input: json!({}),
            reason: "Why?".to_owned(),
            schema: None,
            deadline: None,
            shown_at: None,
            refused: None,
        });
        let message = stored(vec![Part::ToolCall(call("c1"))]);
        let rows = [
            (ApprovalForm::States, vec!["tool-add", "data-ask"]),
            (ApprovalForm::Data, vec!["tool-add", "data-approval", "data-ask"]),
        ];
        for (form, expected) in rows {
            let shown = to_value(UiMessageView::of(&message, form, &asks)).unwrap();
            let parts = shown["parts"].as_array().unwrap().iter();
            let kinds: Vec<_> = parts.map(|part| part["type"].as_str().unwrap()).collect();
            assert_eq!(kinds, expected);
        }
    }

    #[test]
    fn shown_messages_can_be_read_back() {
        let is_open =
            |part: &Part| matches!(part, Part::ToolCall(call) if call.tool_call_id == "c3");
        // a call without a result is not part of later prompts
        let answered = every_part().into_iter().filter(|part| !is_open(part)).collect();
        let first = stored(answered);
        let shown = to_value(UiMessageView::of(&first, ApprovalForm::States, &[])).unwrap();
        let read = messages_of("input", &json!([shown]), false).unwrap().remove(0);
        assert_eq!((read.id.as_deref(), read.role), (Some("m1"), Role::Assistant));
        let again = stored(read.parts);
        assert_eq!(to_value(UiMessageView::of(&again, ApprovalForm::States, &[])).unwrap(), shown);
    }
}
