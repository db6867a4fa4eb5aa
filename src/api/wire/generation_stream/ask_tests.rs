//! Streams of generations that are suspended and continue.

use std::sync::Arc;

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::domain::message::{ToolCall, ToolOutcome, ToolResult};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::model::{FinishReason, Usage};
use greenroom_actors::ports::store::AskKind;
use serde_json::{Value, json};

use super::*;

fn ask(kind: AskKind) -> GenerationEvent {
    GenerationEvent::Ask(Box::new(PendingAsk {
        ask_id: Arc::from("ask_1"),
        kind,
        tool_call_id: Arc::from("inner"),
        tool_name: Arc::from("refund"),
        input: json!({ "amount": 500 }),
        reason: "Refund 500".to_owned(),
        schema: (kind == AskKind::Input).then(|| json!({ "type": "string" })),
        deadline: (kind == AskKind::Approval).then_some(Timestamp(0)),
        shown_at: Some(Arc::from("c1")),
        refused: None,
    }))
}

fn result(outcome: ToolOutcome) -> GenerationEvent {
    let (tool_call_id, tool_name) = ("c1".to_owned(), "refund".to_owned());
    GenerationEvent::ToolResult(ToolResult { tool_call_id, tool_name, input: json!({}), outcome })
}

/// A run that is put down, for a question of this kind.
fn suspended(kind: AskKind) -> Vec<GenerationEvent> {
    let (tool_call_id, tool_name) = ("c1".to_owned(), "refund".to_owned());
    let (finish_reason, usage) = (FinishReason::ToolCalls, Usage::default());
    vec![
        GenerationEvent::Start { generation_id: Arc::from("g1"), message_id: Arc::from("m1") },
        GenerationEvent::StepStart,
        GenerationEvent::ToolCall(ToolCall { tool_call_id, tool_name, input: json!({}) }),
        ask(kind),
        GenerationEvent::StepFinish { finish_reason, usage },
        GenerationEvent::Finish { finish_reason, usage, stand_in: None },
    ]
}

/// A run that continues with this outcome of the call.
fn continued(outcome: ToolOutcome) -> Vec<GenerationEvent> {
    let (finish_reason, usage) = (FinishReason::Stop, Usage::default());
    vec![
        GenerationEvent::Start { generation_id: Arc::from("g1"), message_id: Arc::from("m1") },
        result(outcome),
        GenerationEvent::StepStart,
        GenerationEvent::StepFinish { finish_reason, usage },
        GenerationEvent::Finish { finish_reason, usage, stand_in: None },
    ]
}

/// Returns the data of a stream without that of these types.
fn without(types: &[&str], mut stream: GenerationStream, events: &[GenerationEvent]) -> Vec<Value> {
    let mut out = Vec::new();
    for event in events {
        stream.write(event, false, &mut out).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    let chunks = data.map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap());
    chunks.filter(|chunk: &Value| !types.contains(&chunk["type"].as_str().unwrap())).collect()
}

fn chat(approvals: ApprovalForm, events: &[GenerationEvent]) -> Vec<Value> {
    let usual = ["start-step", "tool-input-available", "finish-step"];
    let mut chunks = without(&usual, GenerationStream::Chat(approvals), events);
    assert_eq!(chunks.remove(0), json!({ "type": "start", "messageId": "m1" }));
    assert_eq!(chunks.pop().unwrap()["type"], "finish");
    chunks
}

/// Early clients refuse keys that they do not know, and all clients types.
#[test]
fn a_chat_asks_in_the_form_that_its_clients_know() {
    let question = json!({ "type": "data-ask", "id": "ask_1", "data": {
        "askId": "ask_1", "toolCallId": "c1", "question": "Refund 500",
        "schema": { "type": "string" } } });
    let as_data = json!({ "type": "data-approval", "id": "ask_1", "data": {
        "askId": "ask_1", "toolCallId": "c1", "toolName": "refund", "input": { "amount": 500 },
        "reason": "Refund 500" } });
    let request =
        json!({ "type": "tool-approval-request", "approvalId": "ask_1", "toolCallId": "c1" });
    let rows = [
        (AskKind::Approval, ApprovalForm::States, request),
        (AskKind::Approval, ApprovalForm::Data, as_data),
        (AskKind::Input, ApprovalForm::States, question.clone()),
        (AskKind::Input, ApprovalForm::Data, question),
    ];
    for (kind, form, expected) in rows {
        assert_eq!(chat(form, &suspended(kind)), [expected], "{kind:?} {form:?}");
    }
}

/// Data parts that are transient are passed to the page and kept nowhere.
#[test]
fn a_chat_says_why_it_asks_again() {
    let refusal = json!({ "type": "data-answer-refused", "transient": true, "data": {
        "askId": "ask_1", "toolCallId": "c1", "message": "the answer was refused: no" } });
    let mut events = suspended(AskKind::Approval);
    for event in &mut events {
        if let GenerationEvent::Ask(ask) = event {
            ask.refused = Some("the answer was refused: no".to_owned());
        }
    }
    for form in [ApprovalForm::States, ApprovalForm::Data] {
        let chunks = chat(form, &events);
        assert_eq!((chunks.len(), &chunks[1]), (2, &refusal), "{form:?}");
    }
}

#[test]
fn a_chat_that_continues_begins_with_the_results() {
    let denied = || ToolOutcome::Denied("refused by a person".to_owned());
    let rows = [
        (
            ToolOutcome::Output(json!(1)),
            ApprovalForm::States,
            json!({ "type": "tool-output-available", "toolCallId": "c1", "output": 1 }),
        ),
        (
            denied(),
            ApprovalForm::States,
            json!({ "type": "tool-output-denied", "toolCallId": "c1" }),
        ),
        (
            denied(),
            ApprovalForm::Data,
            json!({ "type": "tool-output-error", "toolCallId": "c1",
                    "errorText": "refused by a person" }),
        ),
    ];
    for (outcome, form, expected) in rows {
        assert_eq!(chat(form, &continued(outcome)), [expected], "{form:?}");
    }
}

#[test]
fn other_streams_show_what_is_asked_and_refused() {
    let shown = |kind, named: &str, more: Value| {
        let mut expected = json!({ "type": named, "askId": "ask_1", "kind": kind,
            "toolCallId": "c1", "toolName": "refund", "input": { "amount": 500 },
            "reason": "Refund 500" });
        expected.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        expected
    };
    let deadline = json!({ "deadline": "1970-01-01T00:00:00.000Z" });
    let schema = json!({ "schema": { "type": "string" } });
    let rows = [
        (AskKind::Approval, "approval", "tool-approval-request", deadline),
        (AskKind::Input, "input", "ask", schema),
    ];
    for (kind, word, raw, more) in rows {
        let usual = ["start", "start-step", "tool-call", "finish-step", "finish"];
        let events = suspended(kind);
        let found = without(&usual, GenerationStream::raw(), &events);
        assert_eq!(found, [shown(word, raw, more.clone())]);
        let found = without(&usual, GenerationStream::object(), &events);
        assert_eq!(found, [shown(word, "ask", more)]);
    }
    let denied = continued(ToolOutcome::Denied("refused".to_owned()));
    let found = without(
        &["start", "start-step", "finish-step", "finish"],
        GenerationStream::raw(),
        &denied,
    );
    let expected = json!({ "type": "tool-output-denied", "toolCallId": "c1",
        "toolName": "refund", "input": {}, "reason": "refused" });
    assert_eq!(found, [expected]);
    let mut text = GenerationStream::object_text();
    assert_eq!(text.write(&ask(AskKind::Approval), false, &mut Vec::new()), Err(CutShort));
}
