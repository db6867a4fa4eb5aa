//! What goes out.

use std::sync::Arc;

use greenroom::adapters::models::{Objects, Omitted};
use greenroom_actors::domain::message::{FileSource, ToolOutcome, ToolResult};
use greenroom_actors::ports::model::{
    LanguageModel, Message, ModelOptions, ModelRequest, Part, Role, ToolCall, ToolSpec,
};
use serde_json::{Value, json};

use super::server::{Asked, Provider};
use super::{CANARY, FORMATS, asking, config, model, request, says};

/// Asks once; gives what the provider saw.
async fn seen(provider: &str, request: ModelRequest) -> Asked {
    seen_with(provider, request, |_| {}).await
}

async fn seen_with(
    provider: &str,
    request: ModelRequest,
    change: impl FnOnce(&mut greenroom::adapters::models::ProviderConfig),
) -> Asked {
    let server = Provider::start([says(provider, "{}")]);
    let mut config = config(provider, &server);
    change(&mut config);
    model(config).generate(request).await.unwrap();
    server.asked().remove(0)
}

fn header<'a>(asked: &'a Asked, name: &str) -> Option<&'a str> {
    asked.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn options() -> ModelOptions {
    ModelOptions {
        temperature: Some(0.7),
        max_output_tokens: Some(123),
        top_p: Some(0.9),
        frequency_penalty: Some(0.0),
        presence_penalty: Some(1.5),
        seed: Some(42),
        stop_sequences: Some(vec!["END".to_owned()]),
        provider_options: Some(json!({ "extra": { "a": 1 }, "generationConfig": { "topK": 7 },
                                       "model": "other", "gemini": { "only": "gemini" } })),
    }
}

#[tokio::test]
async fn each_provider_is_asked_at_its_place_with_the_key_in_a_header() {
    let bearer = format!("Bearer {CANARY}");
    let rows = [
        ("openai", "/v1/chat/completions", "authorization", bearer.as_str()),
        ("anthropic", "/v1/messages", "x-api-key", CANARY),
        ("gemini", "/v1/models/m-1:streamGenerateContent?alt=sse", "x-goog-api-key", CANARY),
    ];
    for (provider, path, name, value) in rows {
        let asked = seen(provider, asking("hi")).await;
        assert_eq!((asked.path.as_str(), header(&asked, name)), (path, Some(value)));
        assert_eq!(header(&asked, "content-type"), Some("application/json"));
        assert!(!asked.body.to_string().contains(CANARY));
    }
    let whole = seen_with("gemini", asking("hi"), |config| config.stream = false).await;
    assert_eq!(whole.path, "/v1/models/m-1:generateContent");
    let whole = seen_with("openai", asking("hi"), |config| config.stream = false).await;
    assert_eq!(whole.body.get("stream"), None);
}

#[tokio::test]
async fn every_option_is_on_the_wire() {
    // option, its place in each format; none where the format has no such place
    let rows = [
        (
            Omitted::Temperature,
            "/temperature",
            Some("/temperature"),
            "/generationConfig/temperature",
            json!(0.7),
        ),
        (
            Omitted::MaxOutputTokens,
            "/max_tokens",
            Some("/max_tokens"),
            "/generationConfig/maxOutputTokens",
            json!(123),
        ),
        (Omitted::TopP, "/top_p", Some("/top_p"), "/generationConfig/topP", json!(0.9)),
        (
            Omitted::FrequencyPenalty,
            "/frequency_penalty",
            None,
            "/generationConfig/frequencyPenalty",
            json!(0.0),
        ),
        (
            Omitted::PresencePenalty,
            "/presence_penalty",
            None,
            "/generationConfig/presencePenalty",
            json!(1.5),
        ),
        (Omitted::Seed, "/seed", None, "/generationConfig/seed", json!(42)),
        (
            Omitted::StopSequences,
            "/stop",
            Some("/stop_sequences"),
            "/generationConfig/stopSequences",
            json!(["END"]),
        ),
        (Omitted::ProviderOptions, "/extra/a", Some("/extra/a"), "/extra/a", json!(1)),
    ];
    let full = || ModelRequest { options: options(), ..asking("hi") };
    for provider in FORMATS {
        let body = seen(provider, full()).await.body;
        for (omitted, openai, anthropic, gemini, value) in &rows {
            let place = match provider {
                "openai" => Some(*openai),
                "anthropic" => *anthropic,
                _ => Some(*gemini),
            };
            let Some(place) = place else { continue };
            assert_eq!(body.pointer(place), Some(value), "{provider} {place}: {body}");
            let body =
                seen_with(provider, full(), |config| config.omit = vec![*omitted]).await.body;
            // Anthropic cannot do without a bound
            let left = (provider == "anthropic" && place == "/max_tokens").then(|| json!(4000));
            assert_eq!(body.pointer(place), left.as_ref(), "{provider} without {place}: {body}");
        }
        assert!(body.pointer("/generationConfig/topK").is_some(), "{provider}");
        assert_eq!(body.get("only").is_some(), provider == "gemini");
        assert_ne!(body.get("model"), Some(&json!("other")));
    }
}

#[tokio::test]
async fn tools_and_results_are_told() {
    let tool = ToolSpec {
        name: "files.read".to_owned(),
        description: "Reads".to_owned(),
        parameters: json!({ "type": "object", "properties": { "p": {} } }),
    };
    let call = |id: &str| ToolCall {
        tool_call_id: id.to_owned(),
        tool_name: "files.read".to_owned(),
        input: json!({ "p": 1 }),
    };
    let result = |id: &str, outcome| {
        let (tool_call_id, tool_name) = (id.to_owned(), "files.read".to_owned());
        Part::ToolResult(ToolResult { tool_call_id, tool_name, input: json!({ "p": 1 }), outcome })
    };
    let thoughts = json!({ "blocks": [{ "type": "thinking", "thinking": "h", "signature": "s" }] });
    let state =
        |provider: &str, state| Part::ProviderState { provider: provider.to_owned(), state };
    let message = |role, parts| Message { id: None, role, parts };
    let messages = vec![
        Message::text(Role::System, "be brief"),
        Message::text(Role::User, "read"),
        message(
            Role::Assistant,
            vec![
                Part::Text { text: "well".to_owned() },
                Part::Reasoning { text: "h".to_owned() },
                Part::ToolCall(call("a#1")),
                Part::ToolCall(call("b")),
                Part::ToolCall(call("unanswered")),
                state("anthropic", thoughts),
                state("gemini", json!({ "calls": { "a#1": "s" } })),
            ],
        ),
        message(
            Role::Tool,
            vec![
                result("a#1", ToolOutcome::Output(json!({ "x": 1 }))),
                result("b", ToolOutcome::Error("gone".to_owned())),
                result("uncalled", ToolOutcome::Output(json!(1))),
            ],
        ),
    ];
    let asked = || ModelRequest { tools: Arc::from([tool.clone()]), ..request(messages.clone()) };
    let openai = seen("openai", asked()).await.body;
    let function = |id: &str| {
        json!({ "id": id, "type": "function", "function": {
        "name": "files_read", "arguments": "{\"p\":1}" } })
    };
    assert_eq!(
        openai["messages"],
        json!([
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "read" },
            { "role": "assistant", "content": "well", "tool_calls": [function("a#1"), function("b")] },
            { "role": "tool", "tool_call_id": "a#1", "content": "{\"x\":1}" },
            { "role": "tool", "tool_call_id": "b", "content": "{\"error\":\"gone\"}" },
        ])
    );
    assert_eq!(openai["tools"][0]["function"]["name"], "files_read");
    let anthropic = seen("anthropic", asked()).await.body;
    assert_eq!(anthropic["system"], json!([{ "type": "text", "text": "be brief" }]));
    let tool_use = |id: &str| {
        json!({ "type": "tool_use", "id": id, "name": "files_read",
                                      "input": { "p": 1 } })
    };
    assert_eq!(
        anthropic["messages"][1]["content"],
        json!([
        { "type": "thinking", "thinking": "h", "signature": "s" },
        { "type": "text", "text": "well" }, tool_use("a_1"), tool_use("b") ])
    );
    assert_eq!(
        anthropic["messages"][2],
        json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": "a_1", "content": "{\"x\":1}" },
        { "type": "tool_result", "tool_use_id": "b", "content": "gone", "is_error": true } ] })
    );
    assert_eq!(anthropic["tools"][0]["name"], "files_read");
    let gemini = seen("gemini", asked()).await.body;
    let called = json!({ "name": "files_read", "args": { "p": 1 } });
    assert_eq!(
        gemini["contents"][1],
        json!({ "role": "model", "parts": [
        { "text": "well" }, { "functionCall": called, "thoughtSignature": "s" },
        { "functionCall": called } ] })
    );
    assert_eq!(
        gemini["contents"][2]["parts"],
        json!([
        { "functionResponse": { "name": "files_read", "response": { "output": { "x": 1 } } } },
        { "functionResponse": { "name": "files_read", "response": { "error": "gone" } } } ])
    );
    assert_eq!(gemini["tools"][0]["functionDeclarations"][0]["name"], "files_read");
}

#[tokio::test]
async fn files_are_told() {
    let file = |media_type: &str, source: FileSource| {
        let part = Part::File { media_type: media_type.to_owned(), source, filename: None };
        let text = Part::Text { text: "look".to_owned() };
        request(vec![Message { id: None, role: Role::User, parts: vec![text, part] }])
    };
    let here = || FileSource::Base64("QUJD".to_owned());
    let there = || FileSource::Url("https://a.example/a".to_owned());
    let inline = || FileSource::Url("data:image/png;base64,QUJD".to_owned());
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "QUJD" });
    let rows = [
        (
            "openai",
            "image/png",
            here(),
            "/messages/0/content/1/image_url/url",
            json!("data:image/png;base64,QUJD"),
        ),
        (
            "openai",
            "image/png",
            there(),
            "/messages/0/content/1/image_url/url",
            json!("https://a.example/a"),
        ),
        ("openai", "audio/wav", here(), "/messages/0/content/1/input_audio/format", json!("wav")),
        (
            "openai",
            "application/pdf",
            here(),
            "/messages/0/content/1/file/file_data",
            json!("data:application/pdf;base64,QUJD"),
        ),
        ("anthropic", "image/png", inline(), "/messages/0/content/1/source", source),
        (
            "anthropic",
            "application/pdf",
            there(),
            "/messages/0/content/1",
            json!({ "type": "document", "source": { "type": "url", "url": "https://a.example/a" } }),
        ),
        ("gemini", "video/mp4", here(), "/contents/0/parts/1/inlineData/data", json!("QUJD")),
        (
            "gemini",
            "video/mp4",
            there(),
            "/contents/0/parts/1/fileData/fileUri",
            json!("https://a.example/a"),
        ),
    ];
    for (provider, media_type, source, place, expected) in rows {
        let body = seen(provider, file(media_type, source)).await.body;
        assert_eq!(body.pointer(place), Some(&expected), "{provider} {media_type}: {body}");
    }
    let server = Provider::start([]);
    for provider in ["openai", "anthropic"] {
        let answer = model(config(provider, &server)).generate(file("video/mp4", there())).await;
        let error = answer.unwrap_err().message;
        assert!(error.ends_with("not files of type video/mp4"), "{error}");
    }
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn objects_are_asked_for_natively_or_in_words() {
    let object = json!({ "type": "object", "properties": { "a": { "type": "string" } },
                         "required": ["a"], "additionalProperties": false });
    let list = json!({ "type": "array", "items": {} });
    let open = json!({ "type": "object" });
    let tool = ToolSpec { name: "t".into(), description: String::new(), parameters: json!({}) };
    // provider, way, schema, with tools, place, expected there, whether in words as well
    type Row<'a> = (&'a str, Objects, &'a Value, bool, &'a str, Option<Value>, bool);
    let rows: [Row<'_>; 10] = [
        (
            "openai",
            Objects::Native,
            &object,
            true,
            "/response_format/json_schema",
            Some(json!({ "name": "answer", "schema": object, "strict": true })),
            false,
        ),
        (
            "openai",
            Objects::Native,
            &open,
            false,
            "/response_format/json_schema/strict",
            Some(json!(false)),
            false,
        ),
        (
            "openai",
            Objects::Native,
            &list,
            false,
            "/response_format/json_schema/schema",
            Some(list.clone()),
            false,
        ),
        (
            "openai",
            Objects::Json,
            &object,
            false,
            "/response_format/type",
            Some(json!("json_object")),
            true,
        ),
        ("openai", Objects::Json, &list, false, "/response_format", None, true),
        ("openai", Objects::Instruction, &object, false, "/response_format", None, true),
        (
            "anthropic",
            Objects::Native,
            &object,
            false,
            "/tools/0/input_schema",
            Some(object.clone()),
            false,
        ),
        ("anthropic", Objects::Native, &object, true, "/tool_choice", None, true),
        (
            "gemini",
            Objects::Native,
            &list,
            false,
            "/generationConfig/responseJsonSchema",
            Some(list.clone()),
            false,
        ),
        (
            "gemini",
            Objects::Native,
            &object,
            true,
            "/generationConfig/responseMimeType",
            None,
            true,
        ),
    ];
    for (provider, objects, schema, has_tools, place, expected, in_words) in rows {
        let tools = if has_tools { vec![tool.clone()] } else { vec![] };
        let schema = Some(Arc::new(schema.clone()));
        let request = ModelRequest { tools: tools.into(), schema, ..asking("hi") };
        let body = seen_with(provider, request, |config| config.objects = objects).await.body;
        let row = format!("{provider} {objects:?} {place}: {body}");
        assert_eq!(body.pointer(place), expected.as_ref(), "{row}");
        assert_eq!(body.to_string().contains("JSON Schema below"), in_words, "{row}");
    }
}
