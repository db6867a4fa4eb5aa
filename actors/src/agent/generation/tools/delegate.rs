//! `delegate_task`: the tool with which an agent delegates to its sub-agents.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::agent::tool::{ToolBody, ToolDefinition};
use crate::ports::model::ToolSpec;
use crate::registry::Registry;

const NAME: &str = "delegate_task";

/// Returns the tool for these agents, or `None` without agents. The error names an agent that is
/// not registered.
pub(super) fn tool(
    registry: &Registry,
    agents: &[String],
) -> Result<Option<ToolDefinition>, String> {
    let mut ids: Vec<String> = Vec::with_capacity(agents.len());
    let mut description =
        "Delegates a task to another agent and returns its answer. The agents:".to_owned();
    for id in agents {
        let agent = registry.agents.get(id);
        let agent = agent.ok_or_else(|| format!("agent {id} is not registered"))?;
        if !ids.contains(id) {
            let purpose = [&agent.description, &agent.name].into_iter().find(|it| !it.is_empty());
            // writing to a `String` cannot fail
            let _ = write!(description, "\n- {id}: {}", purpose.unwrap_or(id));
            ids.push(id.clone());
        }
    }
    if ids.is_empty() {
        return Ok(None);
    }
    let parameters = parameters(&ids);
    let spec = ToolSpec { name: NAME.to_owned(), description, parameters };
    let tool = ToolDefinition::new(spec, ToolBody::Delegate(ids));
    tool.map(Some).map_err(|error| format!("tool {NAME}: {error}"))
}

/// Returns the parameters; `agent` is optional if there is only one.
fn parameters(ids: &[String]) -> Value {
    let required = if ids.len() == 1 { json!(["task"]) } else { json!(["agent", "task"]) };
    json!({
        "type": "object",
        "required": required,
        "properties": {
            "agent": { "type": "string", "enum": ids, "description": "The agent to do it" },
            "task": {
                "type": "string",
                "description": "What to do, with everything the agent needs to know"
            }
        }
    })
}

/// Returns the agent that the arguments name, or the only one.
pub(super) fn chosen<'a>(ids: &'a [String], arguments: &Value) -> Option<&'a String> {
    match (arguments.get("agent"), ids) {
        (Some(named), _) => ids.iter().find(|id| named == id.as_str()),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

/// Returns the agent and its task.
pub(super) fn task<'a>(
    ids: &'a [String],
    arguments: &'a Value,
) -> Result<(&'a str, &'a str), String> {
    let id = chosen(ids, arguments);
    let id = id.ok_or_else(|| format!("agent: must be one of {}", ids.join(", ")))?;
    let task = arguments.get("task").and_then(Value::as_str);
    Ok((id, task.ok_or("task: must be a string")?))
}
