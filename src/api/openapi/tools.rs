//! Routes of tools.

use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::parts;
use crate::api::error::ApiError;
use crate::api::wire::mcp_servers::{AcceptBody, AcceptedView, RestartedView, ServerView};
use crate::api::wire::shape::ID_PATTERN;
use crate::api::wire::tool::{ToolResultView, ToolView};

pub(super) fn list(components: &mut Components) -> Described {
    let item = components.answer::<ToolView<'_>>();
    let data = json!({ "type": "array", "items": item });
    Described::new("listTools").answering(200, parts::json_answer("All tools, by name", data))
}

/// Creates the schema of the body of a call, with that of its arguments.
pub(super) fn call_body(input: &Value) -> Value {
    let user = json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 200,
                       "pattern": ID_PATTERN,
                       "description": "The user, overridden by that of a token" });
    let context = json!({ "type": ["object", "null"], "description": "Context for the tool" });
    json!({
        "type": "object",
        "required": ["input"],
        "properties": { "input": input, "userId": user, "context": context },
    })
}

pub(super) fn execute(components: &mut Components) -> Described {
    let data = components.answer::<ToolResultView<'_>>();
    let input = json!({ "type": "object", "description": "Arguments of the tool" });
    Described::new("executeTool")
        .about("The call is cancelled if the client disconnects.")
        .with([parts::path("name", "Name of the tool", parts::any_id())])
        .with_query([])
        .with_body(call_body(&input), true, Value::Null)
        .answering(200, parts::json_answer("The result of the tool", data))
        .refusing([
            ApiError::ToolNotFound("add".to_owned().into()),
            ApiError::ToolInputInvalid("n: missing".to_owned()),
            ApiError::ApprovalNeeded { tool: "refund".to_owned(), to: "role:support".to_owned() },
            ApiError::ToolFailed("the warehouse does not respond".to_owned()),
        ])
        .using_runtime()
        .using_memory()
}

pub(super) fn servers(components: &mut Components) -> Described {
    let item = components.answer::<ServerView>();
    let data = json!({ "type": "array", "items": item });
    Described::new("listMcpServers")
        .answering(200, parts::json_answer("All MCP servers, by name", data))
}

pub(super) fn restart(components: &mut Components) -> Described {
    let data = components.answer::<RestartedView>();
    Described::new("restartMcpServer")
        .about(
            "Ends the connection, and the program if it is one, and begins another. Calls in progress \
             are interrupted.",
        )
        .with([parts::path("server", "Name of the server", parts::any_id())])
        .answering(200, parts::json_answer("Another connection begins", data))
        .refusing([ApiError::LocalOnly, ApiError::ServerNotFound("files".to_owned().into())])
}

pub(super) fn accept(components: &mut Components) -> Described {
    let data = components.answer::<AcceptedView>();
    Described::new("acceptMcpTools")
        .about(
            "Accepts the definitions that tools have now, in place of those that were seen or accepted \
             before. Without `tool`, those of all tools that have changed.",
        )
        .with([parts::path("server", "Name of the server", parts::any_id())])
        .with_body(components.body::<AcceptBody>(), false, json!({ "tool": "write_file" }))
        .answering(200, parts::json_answer("The definitions are accepted", data))
        .refusing([
            ApiError::LocalOnly,
            ApiError::ServerNotFound("files".to_owned().into()),
            ApiError::ToolNotFound("write".to_owned().into()),
            ApiError::ToolChanged("files.write_file".to_owned()),
            ApiError::StoreUnavailable { recorded: None },
        ])
}
