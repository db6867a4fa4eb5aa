//! Bytes of all streams for several generations.

use std::sync::Arc;

use greenroom_actors::agent::generation::FailureKind;
use greenroom_actors::domain::message::{ToolCall, ToolOutcome, ToolResult};
use greenroom_actors::ports::model::{FinishReason, ModelErrorKind, Served, Usage};
use serde_json::{Value, json};

use super::*;

fn start() -> GenerationEvent {
    GenerationEvent::Start { generation_id: Arc::from("g1"), message_id: Arc::from("m1") }
}

fn usage(tokens: u64) -> Usage {
    Usage {
        prompt_tokens: tokens,
        completion_tokens: 2,
        total_tokens: tokens + 2,
        cached_input_tokens: 1,
        reasoning_tokens: 0,
    }
}

fn text(id: &str, pieces: &[&str]) -> Vec<GenerationEvent> {
    let id: Arc<str> = Arc::from(id);
    let mut events = vec![GenerationEvent::TextStart { id: Arc::clone(&id) }];
    let delta = |piece: &&str| GenerationEvent::TextDelta {
        id: Arc::clone(&id),
        delta: (*piece).to_owned(),
    };
    events.extend(pieces.iter().map(delta));
    events.push(GenerationEvent::TextEnd { id });
    events
}

fn reasoning() -> [GenerationEvent; 3] {
    let id: Arc<str> = Arc::from("r1");
    [
        GenerationEvent::ReasoningStart { id: Arc::clone(&id) },
        GenerationEvent::ReasoningDelta { id: Arc::clone(&id), delta: "let me see".to_owned() },
        GenerationEvent::ReasoningEnd { id },
    ]
}

/// A call with its result.
fn tool(call_id: &str, outcome: ToolOutcome) -> Vec<GenerationEvent> {
    let id: Arc<str> = Arc::from(call_id);
    let call = ToolCall {
        tool_call_id: call_id.to_owned(),
        tool_name: "add".to_owned(),
        input: json!({ "n": 1 }),
    };
    let ToolCall { tool_call_id, tool_name, input } = call.clone();
    vec![
        GenerationEvent::ToolInputStart {
            tool_call_id: Arc::clone(&id),
            tool_name: Arc::from("add"),
        },
        GenerationEvent::ToolInputDelta {
            tool_call_id: Arc::clone(&id),
            delta: "{\"n\":1}".to_owned(),
        },
        GenerationEvent::ToolInputEnd { tool_call_id: id },
        GenerationEvent::ToolCall(call),
        GenerationEvent::ToolResult(ToolResult { tool_call_id, tool_name, input, outcome }),
    ]
}

fn step(finish_reason: FinishReason, content: Vec<GenerationEvent>) -> Vec<GenerationEvent> {
    let mut events = vec![GenerationEvent::StepStart];
    events.extend(content);
    events.push(GenerationEvent::StepFinish { finish_reason, usage: usage(3) });
    events
}

fn finish() -> GenerationEvent {
    GenerationEvent::Finish { finish_reason: FinishReason::Stop, usage: usage(6), stand_in: None }
}

/// Two turns: tools that succeed and fail, then reasoning and a text with characters that could
/// break a frame.
fn with_tools() -> Vec<GenerationEvent> {
    let mut calls = tool("c1", ToolOutcome::Output(Value::Null));
    calls.extend(tool("c2", ToolOutcome::Error("no such number".to_owned())));
    let mut answer = reasoning().to_vec();
    answer.extend(text("t1", &["It is\n\ntwo", ".\r\ndata: \u{2028}\"x\""]));
    let mut events = vec![start()];
    events.extend(step(FinishReason::ToolCalls, calls));
    events.extend(step(FinishReason::Stop, answer));
    events.push(finish());
    events
}

fn broken_off(end: GenerationEvent) -> Vec<GenerationEvent> {
    let mut events = vec![start(), GenerationEvent::StepStart];
    events.extend(text("t1", &["It"]));
    events.push(end);
    events
}

fn failed() -> Vec<GenerationEvent> {
    let kind = FailureKind::Model(ModelErrorKind::RateLimited);
    broken_off(GenerationEvent::Error { message: "the provider hung up".to_owned(), kind })
}

fn cancelled() -> Vec<GenerationEvent> {
    broken_off(GenerationEvent::Abort)
}

/// Text and a tool call, then an object that the schema rejects, then a valid one.
fn object() -> Vec<GenerationEvent> {
    let mut events = vec![start()];
    let mut first = text("t1", &["{\"not\":\"this\"}"]);
    first.extend(tool("c1", ToolOutcome::Output(json!(2))));
    events.extend(step(FinishReason::ToolCalls, first));
    events.extend(step(FinishReason::Stop, text("t2", &["{\"name\":", "5}"])));
    events.push(GenerationEvent::ObjectRejected { detail: "name: not a text".to_owned() });
    let pieces =
        ["```json\n", "{\"na", "me\":", "\"A", "da\",\n", "\"tags\":[\"x", "\"]}", "\n```"];
    events.extend(step(FinishReason::Stop, text("t3", &pieces)));
    events.push(GenerationEvent::Object(json!({ "name": "Ada", "tags": ["x"] })));
    events.push(finish());
    events
}

fn written(mut stream: GenerationStream, events: &[GenerationEvent]) -> Result<String, CutShort> {
    let mut out = Vec::new();
    for event in events {
        stream.write(event, false, &mut out)?;
    }
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn streams_have_their_recorded_bytes() {
    let cases = [("tools", with_tools()), ("failed", failed()), ("cancelled", cancelled())];
    for (name, events) in cases {
        let raw = written(GenerationStream::raw(), &events).unwrap();
        insta::assert_snapshot!(format!("raw_{name}"), raw);
        let chat = written(GenerationStream::Chat(ApprovalForm::States), &events).unwrap();
        insta::assert_snapshot!(format!("chat_{name}"), chat);
    }
    for (name, events) in [("object", object()), ("failed", failed()), ("cancelled", cancelled())] {
        let frames = written(GenerationStream::object(), &events).unwrap();
        insta::assert_snapshot!(format!("object_{name}"), frames);
    }
}

/// Keys and types that all releases of the AI SDK with stream version 1 accept.
#[test]
fn chat_chunks_have_only_keys_that_all_clients_accept() {
    let portable: [(&str, &[&str]); 17] = [
        ("start", &["messageId"]),
        ("start-step", &[]),
        ("finish-step", &[]),
        ("text-start", &["id"]),
        ("text-delta", &["id", "delta"]),
        ("text-end", &["id"]),
        ("reasoning-start", &["id"]),
        ("reasoning-delta", &["id", "delta"]),
        ("reasoning-end", &["id"]),
        ("tool-input-start", &["toolCallId", "toolName"]),
        ("tool-input-delta", &["toolCallId", "inputTextDelta"]),
        ("tool-input-available", &["toolCallId", "toolName", "input"]),
        ("tool-output-available", &["toolCallId", "output"]),
        ("tool-output-error", &["toolCallId", "errorText"]),
        ("finish", &["messageMetadata"]),
        ("abort", &[]),
        ("error", &["errorText"]),
    ];
    for events in [with_tools(), failed(), cancelled(), object()] {
        let bytes = written(GenerationStream::Chat(ApprovalForm::States), &events).unwrap();
        let frames: Vec<_> = bytes.split_terminator("\n\n").collect();
        let (done, frames) = frames.split_last().unwrap();
        assert_eq!(*done, "data: [DONE]");
        for frame in frames {
            let chunk: Value = serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap();
            let kind = chunk["type"].as_str().unwrap();
            let known = portable.iter().find(|(name, _)| *name == kind);
            let (_, fields) = known.unwrap_or_else(|| panic!("unknown type of {chunk}"));
            let keys: Vec<_> = chunk.as_object().unwrap().keys().skip(1).collect();
            assert_eq!(keys, *fields, "{chunk}");
        }
    }
}

#[test]
fn the_finish_event_names_a_fallback_model() {
    let served = Served { instead_of: Some("large".into()), ..Served::of("small") };
    let end = GenerationEvent::Finish {
        finish_reason: FinishReason::Stop,
        usage: usage(6),
        stand_in: Some(Box::new(served)),
    };
    let rows = [
        (GenerationStream::raw(), "/answeredBy"),
        (GenerationStream::object(), "/answeredBy"),
        (GenerationStream::Chat(ApprovalForm::States), "/messageMetadata/answeredBy"),
    ];
    for (stream, place) in rows {
        let bytes = written(stream, &[start(), end.clone()]).unwrap();
        let mut data = bytes.lines().filter_map(|line| line.strip_prefix("data: {"));
        let last = format!("{{{}", data.next_back().unwrap());
        let last: Value = serde_json::from_str(&last).unwrap();
        let expected = json!({ "model": "small", "insteadOf": "large" });
        assert_eq!((&last["type"], last.pointer(place)), (&json!("finish"), Some(&expected)));
    }
}

#[test]
fn events_are_numbered_without_a_gap() {
    for stream in [GenerationStream::raw(), GenerationStream::object()] {
        let bytes = written(stream, &object()).unwrap();
        let numbers = bytes.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok());
        let numbers: Vec<usize> = numbers.collect();
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
    }
}

#[test]
fn a_slow_subscriber_misses_only_partial_objects() {
    let mut stream = GenerationStream::object();
    let mut out = Vec::new();
    for event in object() {
        stream.write(&event, true, &mut out).unwrap();
    }
    let out = String::from_utf8(out).unwrap();
    let kinds: Vec<_> = out.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(kinds[0].starts_with("{\"type\":\"object\","), "{out}");
    assert_eq!(kinds.len(), 2);
}

#[test]
fn the_sum_of_partial_objects_is_proportional_to_the_whole() {
    let item = "\"0123456789012345678901234567890123456789\",";
    let whole = format!("[{}\"\"]", item.repeat(10_000));
    let mut events = vec![start(), GenerationEvent::StepStart];
    for piece in whole.as_bytes().chunks(20) {
        let delta = String::from_utf8(piece.to_vec()).unwrap();
        events.push(GenerationEvent::TextDelta { id: Arc::from("t1"), delta });
    }
    let sent = written(GenerationStream::object(), &events).unwrap();
    assert!(sent.len() < 25 * whole.len(), "{} for {}", sent.len(), whole.len());
    assert!(sent.matches("object-delta").count() > 200);
}

#[test]
fn text_is_only_the_json_or_is_cut_short() {
    let json = "{\"a\":[1,2]}";
    let value = || GenerationEvent::Object(json!({ "a": [1, 2] }));
    let stream = |pieces: &[&str], end: Vec<GenerationEvent>| {
        let mut events = vec![start(), GenerationEvent::StepStart];
        events.extend(text("t1", pieces));
        events.extend(end);
        written(GenerationStream::object_text(), &events)
    };
    let error = || GenerationEvent::Error { message: "no".to_owned(), kind: FailureKind::Agent };
    let rejected = || GenerationEvent::ObjectRejected { detail: "no".to_owned() };
    let rows = [
        (stream(&["{\"a\":", "[1,", "2]}"], vec![value(), finish()]), Ok(json)),
        (stream(&["``", "`json\n{\"a\":[1,2]", "}\n``", "`"], vec![value(), finish()]), Ok(json)),
        (stream(&["so: {}"], vec![value(), finish()]), Ok(json)),
        (stream(&["{\"a\":1}"], vec![value(), finish()]), Err(CutShort)),
        (stream(&["{\"a\":"], vec![error()]), Err(CutShort)),
        (stream(&[], vec![error()]), Err(CutShort)),
        (stream(&["{\"a\":"], vec![GenerationEvent::Abort]), Err(CutShort)),
        (stream(&["{\"a\":1}"], vec![rejected()]), Err(CutShort)),
        (stream(&["{\"a\":1}"], vec![GenerationEvent::StepStart]), Err(CutShort)),
        (stream(&["no"], vec![rejected(), GenerationEvent::StepStart, value()]), Ok(json)),
    ];
    for (row, (written, expected)) in rows.into_iter().enumerate() {
        assert_eq!(written, expected.map(str::to_owned), "row {row}");
    }
}
