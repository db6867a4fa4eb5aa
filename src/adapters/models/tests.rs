//! Reading of answers, and timeouts of silence; no sockets.

mod anthropic_rows;
mod choices;
mod gemini_rows;
mod openai_rows;
mod retrying;

use std::sync::Arc;

use greenroom_actors::ports::model::{
    FinishReason, Message, ModelAnswer, ModelErrorKind, ProviderState, Role, ToolCall, ToolSpec,
    Usage,
};
use serde_json::{Value, json};

use super::exchange::Exchange;
use super::*;

const SILENCE_MAX: Duration = Duration::from_secs(30);

fn config(provider: &str) -> ProviderConfig {
    let provider = Provider::named(provider).unwrap();
    ProviderConfig {
        provider,
        base_url: Some(Url::parse("http://127.0.0.1:1/v1/").unwrap()),
        model: "m".to_owned(),
        stream: true,
        objects: provider.objects,
        first_token: SILENCE_MAX,
        omit: Vec::new(),
    }
}

fn request() -> ModelRequest {
    let add = ToolSpec {
        name: "files.read".to_owned(),
        description: "Reads".to_owned(),
        parameters: json!({ "type": "object", "properties": {} }),
    };
    ModelRequest {
        messages: Arc::new(vec![Message::text(Role::User, "hi")]),
        tools: Arc::from([add]),
        ..ModelRequest::default()
    }
}

/// Runs an exchange over the given body.
fn exchange(
    provider: &str,
    request: &ModelRequest,
    body: BoxStream<'static, Result<Vec<u8>, reqwest::Error>>,
) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    let config = config(provider);
    let names = Arc::new(ToolNames::new(&request.tools, &request.messages));
    let prompt = Prompt::new(&config, false, request, &names);
    let reader = config.provider.format.reader(&prompt);
    let answer =
        Answer::new(Arc::clone(&names), Arc::clone(&request.messages), Served::of(&config.model));
    let failures = Failures { provider: config.provider.name, key: None };
    Exchange::new(State::Open(body), reader, answer, failures, SILENCE_MAX).events()
}

async fn read_in_pieces(
    provider: &str,
    request: &ModelRequest,
    body: &str,
    size: usize,
) -> Result<Vec<ModelEvent>, ModelError> {
    let pieces: Vec<_> = body.as_bytes().chunks(size).map(|piece| Ok(piece.to_vec())).collect();
    let events = exchange(provider, request, stream::iter(pieces).boxed());
    let events = events.map(|event| {
        event.map(|event| match event {
            // `served` is tested separately
            ModelEvent::Finished { usage, finish_reason, .. } => {
                ModelEvent::Finished { usage, finish_reason, served: None }
            }
            event => event,
        })
    });
    let events: Vec<_> = events.collect().await;
    events.into_iter().collect()
}

async fn read(provider: &str, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
    read_in_pieces(provider, &request(), body, 7).await
}

/// Formats values as server-sent events.
fn events(frames: &[Value]) -> String {
    frames.iter().map(|frame| format!("data: {frame}\n\n")).collect()
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::TextDelta(text.to_owned())
}

fn thought(text: &str) -> ModelEvent {
    ModelEvent::ReasoningDelta(text.to_owned())
}

fn call(id: &str, name: &str, input: Value) -> ModelEvent {
    let (tool_call_id, tool_name) = (id.to_owned(), name.to_owned());
    ModelEvent::ToolCall(ToolCall { tool_call_id, tool_name, input })
}

fn begun(id: &str) -> ModelEvent {
    let (tool_call_id, tool_name) = (id.to_owned(), "files.read".to_owned());
    ModelEvent::ToolInputStart { tool_call_id, tool_name }
}

fn more(id: &str, delta: &str) -> ModelEvent {
    ModelEvent::ToolInputDelta { tool_call_id: id.to_owned(), delta: delta.to_owned() }
}

fn state(provider: &str, state: Value) -> ModelEvent {
    ModelEvent::ProviderState(ProviderState { provider: provider.to_owned(), state })
}

fn finished(finish_reason: FinishReason, counts: [u64; 4]) -> ModelEvent {
    let [prompt_tokens, cached_input_tokens, completion_tokens, reasoning_tokens] = counts;
    let total_tokens = prompt_tokens + completion_tokens;
    let usage = Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens,
        cached_input_tokens,
        reasoning_tokens,
    };
    ModelEvent::Finished { usage, finish_reason, served: None }
}

fn choice(delta: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// Bodies, each with its events.
type Rows = Vec<(String, Vec<ModelEvent>)>;

/// Returns bodies of each provider, with the events that they make.
fn rows_of_all() -> [(&'static str, Rows); 3] {
    [
        ("openai", openai_rows::rows()),
        ("anthropic", anthropic_rows::rows()),
        ("gemini", gemini_rows::rows()),
    ]
}

#[tokio::test]
async fn answers_are_read_whole_and_in_pieces() {
    for (provider, rows) in rows_of_all() {
        for (body, expected) in rows {
            for size in [1, 2, 3, 64, body.len()] {
                let events = read_in_pieces(provider, &request(), &body, size).await;
                assert_eq!(events.as_ref(), Ok(&expected), "{provider} {size}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn the_id_and_the_model_of_an_answer_are_recorded() {
    let rows = [
        (
            "openai",
            json!({ "id": "r1", "model": "m-2", "choices": [
            { "message": { "content": "a" }, "finish_reason": "stop" }] }),
        ),
        (
            "anthropic",
            json!({ "type": "message", "id": "r1", "model": "m-2", "content": [],
                              "stop_reason": "end_turn" }),
        ),
        (
            "gemini",
            json!({ "responseId": "r1", "modelVersion": "m-2", "candidates": [
            { "content": { "parts": [{ "text": "a" }] }, "finishReason": "STOP" }] }),
        ),
    ];
    for (provider, body) in rows {
        let pieces = stream::iter([Ok(body.to_string().into_bytes())]).boxed();
        let events = exchange(provider, &request(), pieces);
        let served = ModelAnswer::collect(events).await.unwrap().served.unwrap();
        let names = (served.response_id.as_deref(), served.response_model.as_deref());
        assert_eq!(names, (Some("r1"), Some("m-2")), "{provider}");
    }
}

#[tokio::test]
async fn damaged_answers_end_with_one_result() {
    for (provider, rows) in rows_of_all() {
        for (body, _) in rows {
            for at in 0..body.len() {
                for damage in [b"\0".as_slice(), b"[", b"\"", b"9", b"\n", b"\xff", b""] {
                    let damaged = [&body.as_bytes()[..at], damage, &body.as_bytes()[at + 1..]];
                    let pieces = stream::iter([Ok(damaged.concat())]).boxed();
                    let events: Vec<_> = exchange(provider, &request(), pieces).collect().await;
                    let (last, others) = events.split_last().unwrap();
                    let ends = matches!(last, Ok(ModelEvent::Finished { .. }) | Err(_));
                    assert!(ends && others.iter().all(Result::is_ok), "{provider}: {events:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn missing_and_repeated_call_ids_are_replaced() {
    let earlier =
        ToolCall { tool_call_id: "call_0".into(), tool_name: "t".into(), input: json!(1) };
    let earlier = greenroom_actors::ports::model::Part::ToolCall(earlier);
    let message = Message { id: None, role: Role::Assistant, parts: vec![earlier] };
    let request = ModelRequest { messages: Arc::new(vec![message]), ..request() };
    let calls = json!([{ "functionCall": { "name": "t" } }, { "functionCall": { "name": "t" } },
                       { "functionCall": { "name": "t", "id": "call_0" } },
                       { "functionCall": { "name": "t", "id": "new" } }]);
    let body = json!({ "candidates": [{ "content": { "parts": calls }, "finishReason": "STOP" }] });
    let ids = async || {
        let events = read_in_pieces("gemini", &request, &body.to_string(), 50).await.unwrap();
        let ids = events.into_iter().filter_map(|event| match event {
            ModelEvent::ToolCall(call) => Some(call.tool_call_id),
            _ => None,
        });
        ids.collect::<Vec<_>>()
    };
    let made = ids().await;
    let different: std::collections::HashSet<_> = made.iter().collect();
    assert_eq!(different.len(), 4, "{made:?}");
    assert!(!made.contains(&"call_0".to_owned()), "{made:?}");
    assert_eq!(made[3], "new");
    assert_eq!(ids().await, made, "the same for the same prompt");
}

#[tokio::test]
async fn an_object_from_the_answer_tool_is_text() {
    let schema = json!({ "type": "object", "properties": { "a": {} } });
    let request =
        ModelRequest { tools: Arc::from([]), schema: Some(Arc::new(schema)), ..request() };
    let block = json!({ "type": "tool_use", "id": "t", "name": "answer_with_object", "input": {} });
    let body = events(&[
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "input_json_delta", "partial_json": "{\"a\":1}" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ]);
    let events = read_in_pieces("anthropic", &request, &body, 9).await;
    assert_eq!(events.unwrap(), [text("{\"a\":1}"), finished(FinishReason::Stop, [0; 4])]);
}

#[tokio::test]
async fn unreadable_and_incomplete_answers_are_errors() {
    use ModelErrorKind::{Other, Unavailable};
    let begun = choice(&json!({ "content": "x" }));
    let flood: Vec<_> = (0..200)
        .map(|index| {
            choice(&json!({ "tool_calls": [{ "index": index, "id": format!("{index}"),
            "function": { "name": "t", "arguments": "" } }] }))
        })
        .collect();
    let rows = [
        (String::new(), Unavailable, "openai ended the connection without an answer"),
        (": nothing\n\n".to_owned(), Unavailable, "openai ended the connection without an answer"),
        (
            events(&[begun]),
            Unavailable,
            "openai ended the connection before its answer was complete",
        ),
        (
            "data: {\"choi".to_owned(),
            Unavailable,
            "openai ended the connection before its answer was complete",
        ),
        ("<html>\n".to_owned(), Other, "openai sent an answer that is not JSON"),
        ("{\"choices\":".to_owned(), Other, "openai sent an answer that is not JSON"),
        ("data: {\n\n".to_owned(), Other, "openai sent an answer that is not JSON"),
        (
            events(&[json!({ "error": { "message": "boo", "code": 503 } })]),
            Unavailable,
            "openai failed: boo",
        ),
        (events(&flood), Other, "the model's answer has more than 128 tool calls"),
        (
            "data: 1\n\ndata: null\n\ndata: []\n\n".to_owned(),
            Unavailable,
            "openai ended the connection before its answer was complete",
        ),
    ];
    for (body, kind, message) in rows {
        let error = read("openai", &body).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "for {body:.80}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_stopped_at_its_limit() {
    let frame = events(&[choice(&json!({ "content": "x".repeat(100_000) }))]).into_bytes();
    let body = stream::repeat_with(move || Ok(frame.clone())).boxed();
    let events: Vec<_> = exchange("openai", &request(), body).collect().await;
    let error = events.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.message, "the model's answer has more than 16777216 bytes");
}

#[tokio::test(start_paused = true)]
async fn a_silent_provider_times_out() {
    let first = || events(&[choice(&json!({ "content": "x" }))]).into_bytes();
    // comments do not count as an answer
    let dribble = || {
        stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(b":".to_vec())
        })
    };
    let rows = [
        (stream::pending().boxed(), "openai did not begin to answer within"),
        (dribble().boxed(), "openai did not begin to answer within"),
        (stream::iter([Ok(first())]).chain(stream::pending()).boxed(), "openai sent nothing for"),
    ];
    for (body, expected) in rows {
        let begin = tokio::time::Instant::now();
        let events: Vec<_> = exchange("openai", &request(), body).collect().await;
        let error = events.last().unwrap().as_ref().unwrap_err();
        let expected = format!("{expected} 30s (timeouts.first_token)");
        assert_eq!((error.kind, &error.message), (ModelErrorKind::Timeout, &expected));
        assert_eq!(begin.elapsed(), SILENCE_MAX);
    }
    // any number of shorter pauses is accepted
    let slow = stream::iter(0..100).then(move |_| async move {
        tokio::time::sleep(Duration::from_secs(29)).await;
        Ok(events(&[choice(&json!({ "content": "x" }))]).into_bytes())
    });
    let body = slow.chain(stream::iter([Ok(b"data: [DONE]\n\n".to_vec())])).boxed();
    let events: Vec<_> = exchange("openai", &request(), body).collect().await;
    assert_eq!(events.len(), 101);
    assert!(events.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_does_not_count_as_silence() {
    let frame = events(&[choice(&json!({ "content": "x" }))]).into_bytes();
    let body = stream::iter([frame.clone(), frame, b"data: [DONE]\n\n".to_vec()]);
    let body = body.then(async |piece| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(piece)
    });
    let mut events = exchange("openai", &request(), body.boxed());
    while let Some(event) = events.next().await {
        assert!(event.is_ok(), "{event:?}");
        tokio::time::sleep(2 * SILENCE_MAX).await;
    }
}

#[test]
fn regional_hosts_of_openai_are_openai() {
    for (host, expected) in [
        ("api.openai.com", true),
        ("eu.api.openai.com", true),
        ("notapi.openai.com", false),
        ("api.openai.com.example", false),
    ] {
        assert_eq!(is_openai(host), expected, "{host}");
    }
}
