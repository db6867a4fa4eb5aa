//! Tools on the wire.

use greenroom_actors::agent::tool::ToolDefinition;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::json::present;
use crate::api::wire::Iso;
use crate::api::wire::shape::json_schema;

/// An item of `GET /tools`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tool)]
pub struct ToolView<'a> {
    name: &'a str,
    description: &'a str,
    #[schema(schema_with = json_schema)]
    parameters: &'a Value,
    /// Ids of the agents that always have it.
    agents: Vec<&'a str>,
}

impl<'a> ToolView<'a> {
    /// The tool's name.
    pub fn name(&self) -> &str {
        self.name
    }

    /// What the tool does.
    pub fn description(&self) -> &str {
        self.description
    }

    /// Shows a tool; who has it is known elsewhere.
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

/// The answer of `POST /tools/:name/execute`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolResultAnswer)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultView<'a> {
    pub tool_name: &'a str,
    pub result: &'a Value,
    /// In milliseconds.
    pub execution_time: i64,
    /// When it ended.
    pub timestamp: Iso,
}

/// The body of a direct call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolBody {
    #[serde(default, deserialize_with = "present")]
    pub input: Option<Value>,
    pub user_id: Option<String>,
    pub context: Option<Map<String, Value>>,
}
