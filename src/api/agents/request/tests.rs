//! Accepted and refused bodies.

use serde_json::json;

use super::*;

fn parse(kind: RequestKind, body: &Value) -> Result<GenerationRequest, ApiError> {
    read_request("assistant", kind, body.to_string().as_bytes(), &Caller::unchecked())
}

fn with_options(options: &Value) -> Result<GenerationRequest, ApiError> {
    parse(RequestKind::Text, &json!({ "input": "hi", "options": options }))
}

fn refusal(kind: RequestKind, body: &Value) -> String {
    let text = parse(kind, body).unwrap_err().to_string();
    text.strip_prefix("Invalid request body: ").unwrap().to_owned()
}

#[test]
fn an_invalid_id_is_refused_in_every_place() {
    let what = "must not contain / and must not be . or ..";
    let rows = [
        (json!({ "userId": "u", "memory": { "userId": "a/b" } }), "options.memory.userId"),
        (
            json!({ "conversationId": "c", "memory": { "conversationId": ".." } }),
            "options.memory.conversationId",
        ),
    ];
    for (options, place) in rows {
        let body = json!({ "input": "hi", "options": options });
        assert_eq!(refusal(RequestKind::Text, &body), format!("{place}: {what}"));
    }
    let options = json!({ "conversationId": "c" });
    let body = json!({ "input": "hi", "id": "a/b", "options": options });
    assert_eq!(refusal(RequestKind::Chat, &body), format!("id: {what}"));
}

#[test]
fn options_reach_the_request() {
    let request = with_options(&json!({
        "userId": "u", "conversationId": "c", "maxSteps": 3, "temperature": 1,
        "maxOutputTokens": 10, "topP": 0.5, "frequencyPenalty": 2, "presencePenalty": 0,
        "seed": 42, "stopSequences": ["."], "providerOptions": { "a": {} },
        "parallelToolCalls": false,
        "context": { "tone": "kind" }, "contextLimit": 5, "unknown": 1
    }))
    .unwrap();
    assert_eq!((request.max_steps, request.context_limit), (Some(3), Some(5)));
    assert_eq!((request.options.temperature, request.options.seed), (Some(1.0), Some(42)));
    assert_eq!(request.options.parallel_tool_calls, Some(false));
    assert_eq!(
        (request.user_id.as_deref(), request.conversation_id.as_deref()),
        (Some("u"), Some("c"))
    );
    assert_eq!(request.context["tone"], "kind");
    assert_eq!(request.input, "hi");
    assert!(!request.is_chat && !request.is_whole && request.schema.is_none());
}

#[test]
fn numbers_outside_their_ranges_are_refused() {
    let rows = [
        (json!({ "temperature": 1.1 }), "temperature: must be from 0 to 1"),
        (json!({ "topP": -0.1 }), "topP: must be from 0 to 1"),
        (json!({ "frequencyPenalty": 2.5 }), "frequencyPenalty: must be from 0 to 2"),
        (json!({ "presencePenalty": -1 }), "presencePenalty: must be from 0 to 2"),
        (json!({ "maxOutputTokens": 0 }), "maxOutputTokens: must be a whole number of at least 1"),
        (json!({ "maxSteps": 1.5 }), "maxSteps: must be a whole number of at least 1"),
        (json!({ "maxSteps": 0 }), "maxSteps: must be a whole number of at least 1"),
        (
            json!({ "seed": 0.5 }),
            "seed: must be a whole number from -9007199254740991 to 9007199254740991",
        ),
        (
            json!({ "seed": -9_007_199_254_740_992_i64 }),
            "seed: must be a whole number from -9007199254740991 to 9007199254740991",
        ),
        (
            json!({ "maxOutputTokens": 9_007_199_254_740_992_i64 }),
            "maxOutputTokens: must be at most 9007199254740991",
        ),
        (json!({ "contextLimit": -1 }), "contextLimit: must be a whole number of at least 0"),
        (
            json!({ "temperature": "hot" }),
            "temperature: invalid type: string \"hot\", expected f64",
        ),
        (
            json!({ "stopSequences": [1] }),
            "stopSequences[0]: invalid type: integer `1`, expected a string",
        ),
        (
            json!({ "conversationId": "" }),
            "conversationId: must be 1 to 200 characters, no control characters",
        ),
        (
            json!({ "conversationId": "a/b" }),
            "conversationId: must not contain / and must not be . or ..",
        ),
        (json!({ "userId": "a\nb" }), "userId: must be 1 to 200 characters, no control characters"),
        (
            json!({ "memory": { "userId": "x".repeat(201) } }),
            "memory.userId: must be 1 to 200 characters, no control characters",
        ),
        (json!({ "memory": 1 }), "memory: invalid type: integer `1`, expected an object"),
    ];
    for (options, what) in rows {
        let text = with_options(&options).unwrap_err().to_string();
        assert_eq!(text, format!("Invalid request body: options.{what}"));
    }
}

#[test]
fn a_missing_or_wrong_value_is_named() {
    let rows = [
        (RequestKind::Text, json!({}), "input: missing"),
        (RequestKind::Text, json!({ "messages": [] }), "input: missing"),
        (RequestKind::Chat, json!({ "id": "c" }), "input: missing"),
        (RequestKind::Object, json!({ "schema": {} }), "input: missing"),
        (RequestKind::Object, json!({ "input": "hi" }), "schema: missing"),
        (
            RequestKind::Object,
            json!({ "input": "hi", "schema": null }),
            "schema: must be an object",
        ),
        (
            RequestKind::Object,
            json!({ "input": "hi", "schema": true }),
            "schema: must be an object",
        ),
        (RequestKind::Chat, json!({ "input": "hi", "id": 5 }), "id: must be a string"),
        (
            RequestKind::Chat,
            json!({ "input": "hi", "id": "" }),
            "id: must be 1 to 200 characters, no control characters",
        ),
        (RequestKind::Chat, json!({ "messages": [] }), "messages: must not be empty"),
        (
            RequestKind::Chat,
            json!({ "messages": [{ "role": "user" }] }),
            "messages[0]: must have parts or content",
        ),
    ];
    for (kind, body, what) in rows {
        assert_eq!(refusal(kind, &body), what, "{kind:?} {body}");
    }
}

#[test]
fn ids_are_read_from_several_places() {
    let ids = |kind, body: &Value| {
        let request = parse(kind, body).unwrap();
        (request.user_id, request.conversation_id)
    };
    let some = |text: &str| Some(text.to_owned());
    let memory = json!({ "userId": "mu", "conversationId": "mc" });
    let rows = [
        (RequestKind::Text, json!({ "input": "hi", "id": "chat" }), (None, None)),
        (RequestKind::Text, json!({ "input": "hi", "id": 5 }), (None, None)),
        (RequestKind::Chat, json!({ "input": "hi", "id": "chat" }), (None, some("chat"))),
        (
            RequestKind::Chat,
            json!({ "input": "hi", "id": "chat", "options": { "memory": memory } }),
            (some("mu"), some("mc")),
        ),
        (
            RequestKind::Text,
            json!({ "input": "hi", "options": { "memory": memory, "userId": "u", "conversationId": "c" } }),
            (some("u"), some("c")),
        ),
    ];
    for (kind, body, expected) in rows {
        assert_eq!(ids(kind, &body), expected, "{body}");
    }
}

#[test]
fn a_chat_accepts_input_and_messages() {
    let message =
        json!({ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "hi" }] });
    let body = json!({ "id": "c", "messages": [message], "trigger": "submit-message",
                       "messageId": "m1" });
    let whole = parse(RequestKind::Chat, &body).unwrap();
    assert!(whole.is_chat && whole.is_whole);
    assert_eq!(whole.messages[0].id.as_deref(), Some("m1"));
    assert_eq!(whole.input, json!([message]));

    let newest = parse(RequestKind::Chat, &json!({ "input": [message] })).unwrap();
    assert!(newest.is_chat && !newest.is_whole);
    let both =
        parse(RequestKind::Chat, &json!({ "input": "hello", "messages": [message] })).unwrap();
    assert!(!both.is_whole);
    assert_eq!(both.input, "hello");
}
