//! Agents on the wire.

use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::message::{ToolCall, ToolResult};
use greenroom_actors::generation::Generation;
use greenroom_actors::ports::model::{FinishReason, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::json::{Object, present};

/// An item of `GET /agents`, and `GET /agents/:id`: the two differ only for agents with tools.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentView<'a> {
    id: &'a str,
    name: &'a str,
    description: &'a str,
    status: &'static str,
    model: &'a str,
    tools: [(); 0],
    sub_agents: [(); 0],
    memory: Option<MemoryView>,
    is_telemetry_enabled: bool,
}

#[derive(Debug, Serialize)]
struct MemoryView {
    config: Map<String, Value>,
}

impl<'a> AgentView<'a> {
    /// Shows an agent; whether it works just now is known elsewhere.
    pub fn of(agent: &'a AgentDefinition, is_working: bool) -> Self {
        Self {
            id: &agent.id,
            name: &agent.name,
            description: &agent.description,
            status: if is_working { "working" } else { "idle" },
            model: agent.model.fixed().map_or("dynamic", String::as_str),
            tools: [],
            sub_agents: [],
            memory: agent.memory.then(|| MemoryView { config: Map::new() }),
            is_telemetry_enabled: false,
        }
    }
}

impl AgentView<'_> {
    /// The agent's id.
    pub fn id(&self) -> &str {
        self.id
    }

    /// What the agent is for.
    pub fn description(&self) -> &str {
        self.description
    }
}

/// `GET /agents/:id`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDetailView<'a> {
    #[serde(flatten)]
    agent: AgentView<'a>,
    tool_details: [(); 0],
}

impl<'a> AgentDetailView<'a> {
    /// Shows an agent with everything that callers may know of it.
    pub fn of(agent: &'a AgentDefinition, is_working: bool) -> Self {
        Self { agent: AgentView::of(agent, is_working), tool_details: [] }
    }
}

/// The answer of `POST /agents/:id/text`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TextView<'a> {
    text: &'a str,
    usage: Usage,
    finish_reason: FinishReason,
    tool_calls: &'a [ToolCall],
    tool_results: &'a [ToolResult],
}

impl<'a> TextView<'a> {
    /// Shows what an agent gave.
    pub fn of(generation: &'a Generation) -> Self {
        Self {
            text: &generation.text,
            usage: generation.usage,
            finish_reason: generation.finish_reason,
            tool_calls: &generation.tool_calls,
            tool_results: &generation.tool_results,
        }
    }
}

/// The body of a generation request.
#[derive(Debug, Deserialize)]
pub struct GenerationBody {
    #[serde(default, deserialize_with = "present")]
    pub input: Option<Value>,
    #[serde(default)]
    pub options: Option<Object<GenerationOptions>>,
}

/// `options` of a generation request.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GenerationOptions {
    pub user_id: Option<String>,
    pub conversation_id: Option<String>,
    pub context_limit: Option<f64>,
    pub max_steps: Option<f64>,
    pub temperature: Option<f64>,
    pub max_output_tokens: Option<f64>,
    pub top_p: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub seed: Option<f64>,
    pub stop_sequences: Option<Vec<String>>,
    pub provider_options: Option<Map<String, Value>>,
    pub context: Option<Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn an_agent_has_the_fields_of_the_specification() {
        let agent = AgentDefinition {
            id: "assistant".into(),
            name: "Assistant".into(),
            description: "Helps".into(),
            instructions: Some("be kind".into()),
            model: "offline".into(),
            memory: true,
            ..AgentDefinition::default()
        };
        let expected = json!({
            "id": "assistant", "name": "Assistant", "description": "Helps", "status": "working",
            "model": "offline", "tools": [], "subAgents": [], "memory": { "config": {} },
            "isTelemetryEnabled": false
        });
        assert_eq!(to_value(AgentView::of(&agent, true)).unwrap(), expected);
        let forgetful = AgentDefinition { memory: false, ..agent };
        assert_eq!(to_value(AgentView::of(&forgetful, false)).unwrap()["memory"], Value::Null);
    }

    #[test]
    fn a_text_has_the_fields_of_the_specification() {
        let generation = Generation {
            id: "g1".into(),
            text: "hello".into(),
            usage: Usage {
                prompt_tokens: 1,
                completion_tokens: 1,
                total_tokens: 2,
                ..Usage::default()
            },
            ..Generation::default()
        };
        let expected = json!({
            "text": "hello",
            "usage": { "promptTokens": 1, "completionTokens": 1, "totalTokens": 2,
                       "cachedInputTokens": 0, "reasoningTokens": 0 },
            "finishReason": "stop", "toolCalls": [], "toolResults": []
        });
        assert_eq!(to_value(TextView::of(&generation)).unwrap(), expected);
    }
}
