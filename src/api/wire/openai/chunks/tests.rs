//! Streams of completions, event by event.

use serde_json::{Value, json};

use super::*;
use crate::api::wire::openai::completion::Subject;
use crate::api::wire::openai::samples::{ask, call, head, tool};
use greenroom_actors::agent::generation::FailureKind;

fn start() -> GenerationEvent {
    GenerationEvent::Start { generation_id: Arc::from("g"), message_id: Arc::from("m") }
}

fn text(delta: &str) -> GenerationEvent {
    GenerationEvent::TextDelta { id: Arc::from("0"), delta: delta.to_owned() }
}

fn finish(finish_reason: FinishReason) -> GenerationEvent {
    let usage = Usage { total_tokens: 8, ..Usage::default() };
    GenerationEvent::Finish { finish_reason, usage, stand_in: None }
}

fn input_start(id: &str, name: &str) -> GenerationEvent {
    GenerationEvent::ToolInputStart { tool_call_id: Arc::from(id), tool_name: Arc::from(name) }
}

fn input_delta(id: &str, delta: &str) -> GenerationEvent {
    GenerationEvent::ToolInputDelta { tool_call_id: Arc::from(id), delta: delta.to_owned() }
}

/// Returns the frames of a stream; the last one has to be `[DONE]`.
fn frames(mut chunks: CompletionChunks, events: &[GenerationEvent]) -> Vec<Value> {
    let mut out = Vec::new();
    events.iter().for_each(|event| chunks.write(event, &mut out));
    let text = String::from_utf8(out).unwrap();
    let mut frames: Vec<_> = text.split_terminator("\n\n").collect();
    assert_eq!(frames.pop(), Some("data: [DONE]"), "{text}");
    let data = frames.into_iter().map(|frame| frame.strip_prefix("data: ").unwrap());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn plain() -> CompletionChunks {
    CompletionChunks::new(head(Subject::Agent), false).calling([tool("map")].into())
}

/// Returns what all frames add up to: text, reasoning and calls.
fn sum(frames: &[Value]) -> (String, String, Vec<(String, String)>) {
    let (mut content, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in frames.iter().map(|frame| &frame["choices"][0]["delta"]) {
        content += delta["content"].as_str().unwrap_or_default();
        reasoning += delta["reasoning_content"].as_str().unwrap_or_default();
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if index == calls.len() {
                calls.push((call["id"].as_str().unwrap().to_owned(), String::new()));
            }
            calls[index].1 += call["function"]["arguments"].as_str().unwrap();
        }
    }
    (content, reasoning, calls)
}

#[test]
fn a_text_comes_in_chunks_between_the_role_and_the_reason() {
    let events =
        [start(), GenerationEvent::StepStart, text("he"), text("y"), finish(FinishReason::Stop)];
    let chunk = |delta: Value, reason: Value| {
        json!({
            "id": "chatcmpl-g", "object": "chat.completion.chunk", "created": 1, "model": "desk",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason, "logprobs": null }],
        })
    };
    let expected = [
        chunk(json!({ "role": "assistant", "content": "" }), Value::Null),
        chunk(json!({ "content": "he" }), Value::Null),
        chunk(json!({ "content": "y" }), Value::Null),
        chunk(json!({}), json!("stop")),
    ];
    assert_eq!(frames(plain(), &events), expected);
}

#[test]
fn usage_is_the_last_chunk_where_it_is_asked_for() {
    let chunks = CompletionChunks::new(head(Subject::Agent), true);
    let frames = frames(chunks, &[start(), text("a"), finish(FinishReason::Stop)]);
    let (last, before) = frames.split_last().unwrap();
    assert!(before.iter().all(|frame| frame["usage"].is_null()));
    assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(8)));
}

#[test]
fn texts_of_turns_are_separate_and_own_tools_are_not_shown() {
    let events = [
        start(),
        GenerationEvent::StepStart,
        GenerationEvent::ReasoningDelta { id: Arc::from("r"), delta: "hm".to_owned() },
        text("Let me see."),
        input_start("c1", "add"),
        input_delta("c1", "{}"),
        GenerationEvent::ToolCall(call("c1", "add", json!({}))),
        GenerationEvent::StepStart,
        text("It is "),
        text("5."),
        finish(FinishReason::Stop),
    ];
    let (content, reasoning, calls) = sum(&frames(plain(), &events));
    assert_eq!((content.as_str(), reasoning.as_str()), ("Let me see.\n\nIt is 5.", "hm"));
    assert_eq!(calls, []);
}

#[test]
fn calls_of_the_clients_tools_come_with_all_their_arguments() {
    let events = [
        start(),
        GenerationEvent::StepStart,
        input_start("c1", "map"),
        input_delta("c1", "{\"n\""),
        input_delta("c1", ":1}"),
        GenerationEvent::ToolCall(call("c1", "map", json!({ "n": 1 }))),
        // whole, without pieces
        input_start("c2", "map"),
        GenerationEvent::ToolCall(call("c2", "map", json!({ "n": 2 }))),
        finish(FinishReason::ToolCalls),
    ];
    let frames = frames(plain(), &events);
    let (_, _, calls) = sum(&frames);
    let expected = [("c1", "{\"n\":1}"), ("c2", "{\"n\":2}")];
    let expected = expected.map(|(id, arguments)| (id.to_owned(), arguments.to_owned()));
    assert_eq!(calls, expected);
    assert_eq!(frames.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn an_object_is_its_json() {
    let object = json!({ "a": 1 });
    let chunks = || CompletionChunks::new(head(Subject::Agent), false).of_object();
    let events = [
        start(),
        GenerationEvent::StepStart,
        text("```json\n{\"a\""),
        text(":1}\n```"),
        GenerationEvent::Object(object),
        finish(FinishReason::Stop),
    ];
    let (content, ..) = sum(&frames(chunks(), &events));
    assert_eq!(content, "{\"a\":1}");
    let missed = [
        start(),
        text("{\"a\":2}"),
        GenerationEvent::Object(json!({ "a": 1 })),
        finish(FinishReason::Stop),
    ];
    let frames = frames(chunks(), &missed);
    assert_eq!(frames.last().unwrap()["error"]["code"], "generation_failed", "{frames:?}");
}

#[test]
fn failures_are_an_error_and_the_end() {
    let failed = GenerationEvent::Error { message: "no luck".to_owned(), kind: FailureKind::Agent };
    let rows = [
        (failed, "no luck", "generation_failed"),
        (GenerationEvent::Abort, "the generation was cancelled", "generation_cancelled"),
    ];
    for (event, message, code) in rows {
        let frames = frames(plain(), &[start(), text("a"), event, finish(FinishReason::Stop)]);
        let error = &frames.last().unwrap()["error"];
        assert_eq!((&error["message"], &error["code"]), (&json!(message), &json!(code)));
    }
}

#[test]
fn what_waits_is_said_and_shown() {
    let asked = GenerationEvent::Ask(Box::new(ask("ask_1", "Refund 5?")));
    let frames = frames(plain(), &[start(), text("So."), asked, finish(FinishReason::ToolCalls)]);
    let (content, ..) = sum(&frames);
    assert_eq!(content, "So.\n\nWaiting: Refund 5?");
    let last = frames.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["greenroom"]["asks"][0]["askId"], "ask_1");
}
