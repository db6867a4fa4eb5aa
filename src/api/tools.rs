//! Use cases of tools: list and call.

use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::TraceOrigin;
use greenroom_actors::runtime::{CallTool, CallToolError};
use serde_json::{Map, Value};

use crate::api::caller::Caller;
use crate::api::error::{ApiError, UnknownName};
use crate::api::json;
use crate::api::query::Pairs;
use crate::api::wire::tool::{ToolBody, ToolView};

/// Result of a direct call.
#[derive(Debug)]
pub struct DirectCall {
    pub result: Value,
    pub took_ms: i64,
    pub ended_at: Timestamp,
}

/// Lists the registered tools by name.
pub fn list(registry: &Registry) -> Vec<ToolView<'_>> {
    let agents_with = |name: &String| {
        let agents = registry.agents.values();
        let with = agents.filter(|agent| {
            agent.tools.fixed().is_some_and(|tools| tools.iter().any(|tool| tool == name))
        });
        with.map(|agent| agent.id.as_str()).collect()
    };
    registry.tools.iter().map(|(name, tool)| ToolView::of(tool, agents_with(name))).collect()
}

/// Finds a registered tool. Handlers call it before they read the body.
pub fn find(runtime: &Runtime, name: &str) -> Result<Arc<ToolDefinition>, ApiError> {
    let registry = runtime.registry();
    let known = || registry.tools.keys().map(String::as_str);
    let tool = registry.tools.get(name).cloned();
    tool.ok_or_else(|| ApiError::ToolNotFound(UnknownName::among(name, known())))
}

/// Calls a tool. Dropping the future cancels the call.
pub async fn execute(runtime: &Runtime, call: CallTool) -> Result<DirectCall, ApiError> {
    let begun_at = runtime.clock().now();
    let result = runtime.call_tool(call).await.map_err(refusal_of)?;
    let ended_at = runtime.clock().now();
    let took_ms = ended_at.0.saturating_sub(begun_at.0).max(0);
    Ok(DirectCall { result, took_ms, ended_at })
}

/// Checks the arguments of a call and who makes it, without making it. Returns the arguments.
pub async fn check(runtime: &Runtime, call: CallTool) -> Result<Value, ApiError> {
    runtime.check_tool_call(call).await.map_err(refusal_of)
}

/// Returns the direct call of a tool by the caller.
pub fn call_of(tool: &ToolDefinition, input: Value, caller: &Caller) -> CallTool {
    let mut context = Map::new();
    caller.sign(&mut context);
    CallTool {
        name: tool.spec.name.clone(),
        input,
        user_id: caller.user_id(None),
        answerer: Some(caller.answerer(None)),
        context,
        trace: TraceOrigin::New,
        after: None,
    }
}

/// Reads the call of a tool, for [`execute`].
pub fn read_call(
    tool: &ToolDefinition,
    pairs: &Pairs,
    bytes: &[u8],
    caller: &Caller,
) -> Result<CallTool, ApiError> {
    let ToolBody { input, user_id, context } = json::parse(bytes)?;
    let input = input.ok_or_else(|| ApiError::body("input", "missing"))?;
    let mut context = context.unwrap_or_default();
    let in_context = context.get("userId").and_then(Value::as_str);
    let in_context = in_context.filter(|_| caller.is_auth_off());
    let named = caller.user_of(pairs, user_id.as_deref().or(in_context))?;
    let answerer = Some(caller.answerer(named.as_deref()));
    let user_id = caller.user_id(named);
    caller.sign(&mut context);
    let name = tool.spec.name.clone();
    Ok(CallTool { name, input, user_id, answerer, context, trace: TraceOrigin::New, after: None })
}

/// Returns the refusal for a call that failed.
pub fn refusal_of(error: CallToolError) -> ApiError {
    match error {
        CallToolError::UnknownTool(name) => ApiError::ToolNotFound(name.into()),
        CallToolError::InvalidInput(detail) => ApiError::ToolInputInvalid(detail),
        CallToolError::NotApproved { name, to } => ApiError::ApprovalNeeded { tool: name, to },
        CallToolError::InvalidAnswer(detail) => ApiError::ToolFailed(detail),
        CallToolError::Waits { .. } | CallToolError::Failed(_) => {
            ApiError::ToolFailed(error.to_string())
        }
        CallToolError::Unavailable(cause) => cause.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::agent::tool::ToolBody;
    use greenroom_actors::ports::model::ToolSpec;
    use serde_json::json;

    use super::*;

    fn read(body: &str) -> Result<CallTool, ApiError> {
        let spec = ToolSpec {
            name: "add".to_owned(),
            description: "Adds".to_owned(),
            parameters: json!({ "type": "object" }),
        };
        let function = Arc::new(|input, _| Box::pin(std::future::ready(Ok(input))) as _);
        let tool = ToolDefinition::new(spec, ToolBody::Function(function)).unwrap();
        read_call(&tool, &[], body.as_bytes(), &Caller::unchecked())
    }

    #[test]
    fn a_call_takes_input_context_and_user_from_the_body() {
        let call = read(r#"{"input":{"n":1},"context":{"userId":"ann","tone":"kind"}}"#).unwrap();
        assert_eq!((call.name.as_str(), &call.input), ("add", &json!({ "n": 1 })));
        assert_eq!((call.user_id.as_deref(), &call.context["tone"]), (Some("ann"), &json!("kind")));
        let call = read(r#"{"input":null,"userId":"ben","context":{"userId":"ann"}}"#).unwrap();
        assert_eq!((call.user_id.as_deref(), call.input), (Some("ben"), Value::Null));
    }

    #[test]
    fn an_invalid_body_is_refused_with_its_path() {
        let rows = [
            ("{}", "Invalid request body: input: missing"),
            ("{", "Invalid JSON: EOF while parsing an object at line 1 column 1"),
            ("", "Invalid JSON: EOF while parsing a value at line 1 column 0"),
            ("[]", "Invalid request body: invalid type: sequence, expected an object"),
            (
                r#"{"input":1,"context":[]}"#,
                "Invalid request body: context: invalid type: sequence, expected a map",
            ),
            (
                r#"{"input":1,"userId":""}"#,
                "Invalid request body: userId: must be 1 to 200 characters, no control \
                 characters",
            ),
        ];
        for (body, text) in rows {
            assert_eq!(read(body).unwrap_err().to_string(), text);
        }
    }
}
