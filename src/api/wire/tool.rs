//! Tools on the wire.

use greenroom_actors::agent::tool::ToolDefinition;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::json::present;
use crate::api::wire::Iso;
use crate::api::wire::shape::json_schema;

/// Item of `GET /tools`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tool)]
pub struct ToolView<'a> {
    name: &'a str,
    description: &'a str,
    #[schema(schema_with = json_schema)]
    parameters: &'a Value,
    /// Ids of the agents with a fixed list of tools that includes it.
    agents: Vec<&'a str>,
}

impl<'a> ToolView<'a> {
    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        self.name
    }

    /// Returns the description of the tool.
    pub fn description(&self) -> &str {
        self.description
    }

    /// Shows a tool with the ids of its agents.
    pub fn of(tool: &'a ToolDefinition, agents: Vec<&'a str>) -> Self {
        let spec = &tool.spec;
        Self {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.parameters,
            agents,
        }
    }
}

/// Response of `POST /tools/:name/execute`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolResultAnswer)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultView<'a> {
    pub tool_name: &'a str,
    pub result: &'a Value,
    /// Milliseconds.
    pub execution_time: i64,
    /// Time of its end.
    pub timestamp: Iso,
}

/// Body of a direct call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolBody {
    #[serde(default, deserialize_with = "present")]
    pub input: Option<Value>,
    pub user_id: Option<String>,
    pub context: Option<Map<String, Value>>,
}
