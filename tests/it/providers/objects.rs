//! Requests for objects: in the provider's own format, or by instructions.

use std::sync::Arc;

use greenroom::adapters::models::Objects;
use greenroom_actors::ports::model::{ModelRequest, ToolSpec};
use serde_json::{Value, json};

use super::{asking, seen_with};

/// Mode, schema, with tools; then a pointer into the request, the expected value there, and whether
/// the instructions contain the schema.
type Row = (Objects, Value, bool, &'static str, Option<Value>, bool);

async fn check<const N: usize>(provider: &str, rows: [Row; N]) {
    for (objects, schema, has_tools, place, expected, in_words) in rows {
        let tool = ToolSpec { name: "t".into(), description: String::new(), parameters: json!({}) };
        let tools = if has_tools { vec![tool] } else { vec![] };
        let schema = Some(Arc::new(schema));
        let request = ModelRequest { tools: tools.into(), schema, ..asking("hi") };
        let body = seen_with(provider, request, |config| config.objects = objects).await.body;
        let row = format!("{provider} {objects:?} {place}: {body}");
        assert_eq!(body.pointer(place), expected.as_ref(), "{row}");
        assert_eq!(body.to_string().contains("JSON Schema below"), in_words, "{row}");
    }
}

fn object() -> Value {
    json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
            "additionalProperties": false })
}

fn list() -> Value {
    json!({ "type": "array", "items": {} })
}

#[tokio::test]
async fn openai_gets_schemas_and_marks_strict_ones() {
    use Objects::{Instruction, Json, Native};
    let format = "/response_format";
    let schema = "/response_format/json_schema";
    let strict = "/response_format/json_schema/strict";
    let told = json!({ "name": "answer", "schema": object(), "strict": true });
    let any = json!({ "type": "json_object" });
    let open = json!({ "type": "object" });
    let hinted = json!({ "name": "answer", "schema": list(), "strict": false });
    let rows = [
        (Native, object(), true, schema, Some(told), false),
        (Native, open, false, strict, Some(json!(false)), false),
        (Native, list(), false, schema, Some(hinted), false),
        (Json, object(), false, format, Some(any), true),
        (Json, list(), false, format, None, true),
        (Instruction, object(), false, format, None, true),
    ];
    check("openai", rows).await;
    let any = || Some(json!({ "type": "json_object" }));
    for (provider, with_tools) in [("deepseek", any()), ("groq", None), ("cohere", None)] {
        let rows = [
            (Json, object(), false, format, any(), true),
            (Json, object(), true, format, with_tools, true),
        ];
        check(provider, rows).await;
    }
}

#[tokio::test]
async fn anthropic_is_forced_to_call_a_tool() {
    let rows = [
        (Objects::Native, object(), false, "/tools/0/input_schema", Some(object()), false),
        (Objects::Native, object(), true, "/tool_choice", None, true),
        (Objects::Native, list(), false, "/tools", None, true),
    ];
    check("anthropic", rows).await;
}

#[tokio::test]
async fn gemini_gets_schemas_only_without_tools() {
    let schema = "/generationConfig/responseJsonSchema";
    let rows = [
        (Objects::Native, list(), false, schema, Some(list()), false),
        (Objects::Native, object(), true, schema, None, true),
        (Objects::Native, object(), true, "/generationConfig/responseMimeType", None, true),
        (Objects::Json, object(), true, "/generationConfig/responseMimeType", None, true),
    ];
    check("gemini", rows).await;
}
