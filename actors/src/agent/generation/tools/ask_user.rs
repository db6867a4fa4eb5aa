//! `ask_user`: the tool with which an agent asks a person.

use serde_json::{Value, json};

use crate::agent::ask::ToolAsk;
use crate::agent::tool::{ASK_USER, ToolBody, ToolDefinition};
use crate::domain::schema::SchemaError;
use crate::ports::model::ToolSpec;

/// Returns the tool.
pub(super) fn tool() -> Result<ToolDefinition, SchemaError> {
    let spec = ToolSpec {
        name: ASK_USER.to_owned(),
        description: "Asks the user a question and returns the answer, however long it takes"
            .to_owned(),
        parameters: json!({
            "type": "object",
            "required": ["question"],
            "properties": {
                "question": { "type": "string", "description": "What to ask" },
                "schema": {
                    "type": "object",
                    "description": "JSON Schema of the answer; left out for a free text"
                }
            }
        }),
    };
    ToolDefinition::new(spec, ToolBody::AskUser)
}

/// Returns the question of these arguments. Without a schema the answer is a text.
pub(super) fn question(arguments: &Value) -> ToolAsk {
    let question = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
    let schema = arguments.get("schema").filter(|schema| schema.is_object());
    let schema = schema.cloned().unwrap_or_else(|| json!({ "type": "string" }));
    ToolAsk::new(question).schema(schema)
}
