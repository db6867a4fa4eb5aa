//! Outgoing requests.

use greenroom::adapters::models::Omitted;
use greenroom_actors::domain::message::FileSource;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin, TraceParent};
use greenroom_actors::ports::model::{
    LanguageModel, Message, ModelOptions, ModelRequest, Part, Role,
};
use serde_json::json;
use std::sync::Arc;

use super::{CANARY, FORMATS, asking, config, model, request, seen, seen_with};
use support::provider::{Asked, Provider};

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
        parallel_tool_calls: None,
        provider_options: Some(json!({ "extra": { "a": 1 }, "generationConfig": { "topK": 7 },
                                       "model": "other", "gemini": { "only": "gemini" } })),
    }
}

#[tokio::test]
async fn a_request_carries_the_trace_context() {
    let header = format!("00-{}-b7ad6b7169203331-01", "4bf92f3577b34da6a3ce929d0e0e4736");
    let parent = TraceParent::parse(&header, Some("a=1")).unwrap();
    let root = Arc::from("clerk");
    let trace = Trace::of("g1", EntityType::Agent, &root, TraceOrigin::Remote(parent));
    let below = trace.below("00f067aa0ba902b7".parse().unwrap());
    for provider in FORMATS {
        let none = seen(provider, asking("hi")).await;
        assert_eq!(header_of(&none), (None, None), "{provider}");
        let request = ModelRequest { trace: Some(below.clone()), ..asking("hi") };
        let asked = seen(provider, request).await;
        let expected = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(header_of(&asked), (Some(expected), Some("a=1")), "{provider}");
    }
}

fn header_of(asked: &Asked) -> (Option<&str>, Option<&str>) {
    (header(asked, "traceparent"), header(asked, "tracestate"))
}

#[tokio::test]
async fn each_provider_gets_its_path_and_the_key_in_a_header() {
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
    // option, its place in each format; `None` if the format has none
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
            // Anthropic requires a limit
            let left = (provider == "anthropic" && place == "/max_tokens").then(|| json!(4000));
            assert_eq!(body.pointer(place), left.as_ref(), "{provider} without {place}: {body}");
        }
        assert!(body.pointer("/generationConfig/topK").is_some(), "{provider}");
        assert_eq!(body.get("only").is_some(), provider == "gemini");
        assert_ne!(body.get("model"), Some(&json!("other")));
    }
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
    let pdf = || FileSource::Url("data:application/pdf;base64,QUJD".to_owned());
    let gif = || FileSource::Base64("R0lGODlhAQABAA==".to_owned());
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
        (
            "openai",
            "application/octet-stream",
            pdf(),
            "/messages/0/content/1/file/file_data",
            json!("data:application/pdf;base64,QUJD"),
        ),
        ("anthropic", "image/png", inline(), "/messages/0/content/1/source", source.clone()),
        ("anthropic", "image/*", inline(), "/messages/0/content/1/source", source),
        (
            "anthropic",
            "image/*",
            gif(),
            "/messages/0/content/1/source/media_type",
            json!("image/gif"),
        ),
        (
            "anthropic",
            "application/octet-stream",
            pdf(),
            "/messages/0/content/1/type",
            json!("document"),
        ),
        (
            "gemini",
            "image/*",
            inline(),
            "/contents/0/parts/1/inlineData/mimeType",
            json!("image/png"),
        ),
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
async fn a_conversation_begins_with_a_user_message_where_required() {
    let messages =
        || vec![Message::text(Role::Assistant, "as I said"), Message::text(Role::User, "what?")];
    let rows = [
        ("openai", "/messages/0/role", "assistant"),
        ("anthropic", "/messages/0/role", "user"),
        ("gemini", "/contents/0/role", "user"),
    ];
    for (provider, place, role) in rows {
        let body = seen(provider, request(messages())).await.body;
        assert_eq!(body.pointer(place), Some(&json!(role)), "{provider}: {body}");
    }
}
