//! The routes of tools.

use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::parts;
use crate::api::error::ApiError;
use crate::api::wire::shape::ID_PATTERN;
use crate::api::wire::tool::{ToolResultView, ToolView};

pub(super) fn list(components: &mut Components) -> Described {
    let item = components.of::<ToolView<'_>>();
    let data = json!({ "type": "array", "items": item });
    Described::new("listTools").answering(200, parts::json_answer("All tools, by name", data))
}

/// The body of a call whose arguments are of a schema.
pub(super) fn call_body(input: &Value) -> Value {
    let user = json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 200,
                       "pattern": ID_PATTERN,
                       "description": "For whom; with a token, for its user. May stand in the query" });
    let context = json!({ "type": ["object", "null"], "description": "What the tool may read" });
    json!({
        "type": "object",
        "required": ["input"],
        "properties": { "input": input, "userId": user, "context": context },
    })
}

pub(super) fn execute(components: &mut Components) -> Described {
    let data = components.of::<ToolResultView<'_>>();
    let input = json!({ "type": "object", "description": "What the tool's parameters take" });
    Described::new("executeTool")
        .about("A client that leaves cancels the call.")
        .with([parts::path("name", "Name of the tool", parts::any_id())])
        .asking([])
        .taking(call_body(&input), true, Value::Null)
        .answering(200, parts::json_answer("What the tool gave", data))
        .refusing([
            ApiError::ToolNotFound("add".to_owned().into()),
            ApiError::ToolInputInvalid("n: missing".to_owned()),
            ApiError::ToolFailed("the warehouse does not answer".to_owned()),
        ])
        .working()
}
