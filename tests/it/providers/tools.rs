//! A conversation with tool calls, in each wire format.

use std::sync::Arc;

use greenroom_actors::agent::tool::Content;
use greenroom_actors::domain::message::{ToolOutcome, ToolResult};
use greenroom_actors::ports::model::{Message, ModelRequest, Part, Role, ToolCall, ToolSpec};
use serde_json::{Value, json};

use super::{request, seen, seen_with};

fn call(id: &str) -> Part {
    let (tool_call_id, tool_name) = (id.to_owned(), "files.read".to_owned());
    Part::ToolCall(ToolCall { tool_call_id, tool_name, input: json!({ "p": 1 }) })
}

fn result(id: &str, outcome: ToolOutcome) -> Part {
    let (tool_call_id, tool_name) = (id.to_owned(), "files.read".to_owned());
    Part::ToolResult(ToolResult { tool_call_id, tool_name, input: json!({ "p": 1 }), outcome })
}

fn state(provider: &str, state: Value) -> Part {
    Part::ProviderState { provider: provider.to_owned(), state }
}

/// Two calls with their results, one without, and a result without a call.
fn conversation() -> ModelRequest {
    let thoughts = json!({ "blocks": [{ "type": "thinking", "thinking": "h", "signature": "s" }] });
    let said = vec![
        Part::Text { text: "well".to_owned() },
        Part::Reasoning { text: "h".to_owned() },
        call("a#1"),
        call("b"),
        call("unanswered"),
        state("anthropic", thoughts),
        state("gemini", json!({ "calls": { "a#1": "s" } })),
        state("deepseek", json!({ "reasoning_content": "h" })),
    ];
    let results = vec![
        result("a#1", ToolOutcome::Output(json!({ "x": 1 }))),
        result("b", ToolOutcome::Error("gone".to_owned())),
        result("uncalled", ToolOutcome::Output(json!(1))),
    ];
    let message = |role, parts| Message { id: None, role, parts };
    let messages = vec![
        Message::text(Role::System, "be brief"),
        Message::text(Role::User, "read"),
        message(Role::Assistant, said),
        message(Role::Tool, results),
    ];
    let tool = ToolSpec {
        name: "files.read".to_owned(),
        description: "Reads".to_owned(),
        parameters: json!({ "type": "object", "properties": { "p": {} } }),
    };
    ModelRequest { tools: Arc::from([tool]), ..request(messages) }
}

#[tokio::test]
async fn openai_receives_tools_and_results() {
    let body = seen("openai", conversation()).await.body;
    let function = json!({ "name": "files_read", "arguments": "{\"p\":1}" });
    let call = |id: &str| json!({ "id": id, "type": "function", "function": function });
    let expected = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "read" },
        { "role": "assistant", "content": "well", "tool_calls": [call("a#1"), call("b")] },
        { "role": "tool", "tool_call_id": "a#1", "content": "{\"x\":1}" },
        { "role": "tool", "tool_call_id": "b", "content": "{\"error\":\"gone\"}" },
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(body["tools"][0]["function"]["name"], "files_read");
    let body = seen("deepseek", conversation()).await.body;
    assert_eq!(body["messages"][2]["reasoning_content"], "h");
}

#[tokio::test]
async fn anthropic_receives_tools_and_results() {
    let body = seen("anthropic", conversation()).await.body;
    assert_eq!(body["system"], json!([{ "type": "text", "text": "be brief" }]));
    let input = json!({ "p": 1 });
    let call =
        |id: &str| json!({ "type": "tool_use", "id": id, "name": "files_read", "input": input });
    let said = json!([
        { "type": "thinking", "thinking": "h", "signature": "s" },
        { "type": "text", "text": "well" },
        call("a_1"),
        call("b"),
    ]);
    assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": said }));
    let results = json!([
        { "type": "tool_result", "tool_use_id": "a_1", "content": "{\"x\":1}" },
        { "type": "tool_result", "tool_use_id": "b", "content": "gone", "is_error": true },
    ]);
    assert_eq!(body["messages"][2], json!({ "role": "user", "content": results }));
    assert_eq!(body["tools"][0]["name"], "files_read");
}

/// The conversation without what providers want back, as one of an earlier run or of another provider.
fn of_another_provider() -> ModelRequest {
    let mut request = conversation();
    for message in Arc::make_mut(&mut request.messages) {
        message.parts.retain(|part| !matches!(part, Part::ProviderState { .. }));
    }
    request
}

#[tokio::test]
async fn deepseek_receives_the_reasoning_of_every_message_with_calls() {
    let body = seen("deepseek", of_another_provider()).await.body;
    assert_eq!(body["messages"][2]["reasoning_content"], "h");
    let mut request = of_another_provider();
    for message in Arc::make_mut(&mut request.messages) {
        message.parts.retain(|part| !matches!(part, Part::Reasoning { .. }));
    }
    let body = seen("deepseek", request).await.body;
    assert_eq!(body["messages"][2]["reasoning_content"], "");
    let body = seen("openai", of_another_provider()).await.body;
    assert_eq!(body["messages"][2].get("reasoning_content"), None);
}

#[tokio::test]
async fn gemini_receives_a_signature_for_unsigned_calls_of_the_last_question() {
    let signature = json!("skip_thought_signature_validator");
    let known = json!("s");
    for (model, request, expected) in [
        ("gemini-3-pro-preview", of_another_provider(), Some(&signature)),
        ("gemini-3-pro-preview", conversation(), Some(&known)),
        ("gemini-2.5-flash", of_another_provider(), None),
        ("m-1", of_another_provider(), None),
    ] {
        let mut request = request;
        let body = seen_with("gemini", request.clone(), |config| config.model = model.to_owned());
        let parts = body.await.body["contents"][1]["parts"].clone();
        assert_eq!(parts[1].get("thoughtSignature"), expected, "{model}");
        assert_eq!(parts[2].get("thoughtSignature"), None, "{model}: the call beside it");
        let again = Message::text(Role::User, "and now?");
        Arc::make_mut(&mut request.messages).push(again);
        let body = seen_with("gemini", request, |config| config.model = model.to_owned());
        let signature = body.await.body["contents"][1]["parts"][1].get("thoughtSignature").cloned();
        assert_eq!(signature.as_ref(), expected.filter(|it| *it == &known), "{model}: before it");
    }
}

/// A result with a picture that the providers take, one that is none, and texts.
fn picture() -> (ModelRequest, String) {
    let mut request = conversation();
    let png = b"\x89PNG\r\n\x1a\n.";
    let parts = [
        Content::text("look"),
        Content::image("image/x-odd", png),
        Content::image("image/png", b"no picture"),
    ];
    let outcome = ToolOutcome::Output(Content::result(parts));
    let messages = Arc::make_mut(&mut request.messages);
    let results = &mut messages.last_mut().unwrap().parts;
    results[0] = result("a#1", outcome);
    (request, "iVBORw0KGgou".to_owned())
}

#[tokio::test]
async fn pictures_in_results_reach_models_that_take_them() {
    let none = "[image: image/png, 10 bytes]";
    let (request, data) = picture();
    let body = seen("anthropic", request).await.body;
    let source = json!({ "type": "base64", "media_type": "image/png", "data": data });
    let expected = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "source": source },
        { "type": "text", "text": none },
    ]);
    assert_eq!(body["messages"][2]["content"][0]["content"], expected);
    let (request, data) = picture();
    let body = seen("gemini", request).await.body;
    let described = format!("look\n[image: image/x-odd, 9 bytes]\n{none}");
    let parts = &body["contents"][2]["parts"];
    assert_eq!(parts[0]["functionResponse"]["response"], json!({ "output": described }));
    assert_eq!(parts[1]["functionResponse"]["response"], json!({ "error": "gone" }));
    let files = [
        json!({ "text": "Files in the result of files_read:" }),
        json!({ "inlineData": { "mimeType": "image/png", "data": data } }),
    ];
    assert_eq!(parts.as_array().unwrap()[2..], files);
    let body = seen("openai", picture().0).await.body;
    assert_eq!(body["messages"][3]["content"], described);
}

#[tokio::test]
async fn gemini_receives_tools_and_results() {
    let body = seen("gemini", conversation()).await.body;
    assert_eq!(body["systemInstruction"], json!({ "parts": [{ "text": "be brief" }] }));
    let called = json!({ "name": "files_read", "args": { "p": 1 } });
    let said = json!([
        { "text": "well" },
        { "functionCall": called, "thoughtSignature": "s" },
        { "functionCall": called },
    ]);
    assert_eq!(body["contents"][1], json!({ "role": "model", "parts": said }));
    let result = |response: Value| json!({ "functionResponse": { "name": "files_read", "response": response } });
    let results =
        json!([result(json!({ "output": { "x": 1 } })), result(json!({ "error": "gone" })),]);
    assert_eq!(body["contents"][2], json!({ "role": "user", "parts": results }));
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["name"], "files_read");
}
