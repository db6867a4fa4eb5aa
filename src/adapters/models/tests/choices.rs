//! Choices among tools, in the words of each format.

use greenroom_actors::ports::model::{ModelOptions, ToolChoice};

use super::*;

#[test]
fn the_choice_of_tools_has_the_words_of_the_format() {
    let wire = "files_read";
    let rows = [
        ("openai", ToolChoice::Required, "/tool_choice", json!("required")),
        (
            "openai",
            ToolChoice::Tool("files.read".into()),
            "/tool_choice",
            json!({ "type": "function", "function": { "name": wire } }),
        ),
        ("anthropic", ToolChoice::Required, "/tool_choice", json!({ "type": "any" })),
        (
            "anthropic",
            ToolChoice::Tool("files.read".into()),
            "/tool_choice",
            json!({ "type": "tool", "name": wire }),
        ),
        (
            "gemini",
            ToolChoice::Required,
            "/toolConfig/functionCallingConfig",
            json!({ "mode": "ANY" }),
        ),
        (
            "gemini",
            ToolChoice::Tool("files.read".into()),
            "/toolConfig/functionCallingConfig",
            json!({ "mode": "ANY", "allowedFunctionNames": [wire] }),
        ),
    ];
    for (provider, tool_choice, place, expected) in rows {
        let config = config(provider);
        let body = |tool_choice: ToolChoice| {
            let request = ModelRequest { tool_choice, ..request() };
            let names = ToolNames::new(&request.tools, &request.messages);
            let prompt = Prompt::new(&config, false, &request, &names);
            config.provider.format.body(&prompt).unwrap()
        };
        assert_eq!(body(tool_choice).pointer(place), Some(&expected), "{provider}");
        assert_eq!(body(ToolChoice::Auto).pointer(place), None, "{provider}");
    }
}

#[test]
fn calls_one_by_one_have_the_words_of_the_format() {
    let body_of = |config: &ProviderConfig, parallel_tool_calls, tool_choice, request| {
        let options = ModelOptions { parallel_tool_calls, ..ModelOptions::default() };
        let request = ModelRequest { tool_choice, options, ..request };
        let names = ToolNames::new(&request.tools, &request.messages);
        let prompt = Prompt::new(config, false, &request, &names);
        config.provider.format.body(&prompt).unwrap()
    };
    let body = |provider: &str, parallel, choice, request: ModelRequest| {
        body_of(&config(provider), parallel, choice, request)
    };
    let (auto, any) = (ToolChoice::Auto, ToolChoice::Required);
    let one = |kind: &str| json!({ "type": kind, "disable_parallel_tool_use": true });
    let rows = [
        ("openai", &auto, "/parallel_tool_calls", Some(json!(false))),
        ("ollama", &any, "/parallel_tool_calls", Some(json!(false))),
        ("anthropic", &auto, "/tool_choice", Some(one("auto"))),
        ("anthropic", &any, "/tool_choice", Some(one("any"))),
        // the format has no word for it
        ("gemini", &auto, "/toolConfig", None),
    ];
    for (provider, choice, place, expected) in rows {
        let said = body(provider, Some(false), choice.clone(), request());
        assert_eq!(said.pointer(place), expected.as_ref(), "{provider}: {said}");
        let usual = body(provider, None, choice.clone(), request());
        assert_eq!(body(provider, Some(true), choice.clone(), request()), usual, "{provider}");
        let omit = vec![Omitted::ParallelToolCalls];
        let omitting = ProviderConfig { omit, ..config(provider) };
        assert_eq!(body_of(&omitting, Some(false), choice.clone(), request()), usual, "{provider}");
        let without = || ModelRequest { tools: Arc::from([]), ..request() };
        let usual = body(provider, None, auto.clone(), without());
        assert_eq!(body(provider, Some(false), auto.clone(), without()), usual, "{provider}");
    }
}
