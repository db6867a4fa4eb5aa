//! Agents on the wire.

use std::borrow::Cow;
use std::sync::Arc;

use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::agent::generation::Generation;
use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::domain::message::{ToolCall, ToolResult};
use greenroom_actors::ports::model::{FinishReason, ToolSpec, Usage};
use greenroom_actors::registry::Registry;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::api::json::{Object, present};
use crate::api::wire::pending_ask::PendingAskView;
use crate::api::wire::shape::{
    FinishReasonShape, ToolCallShape, ToolResultShape, UsageShape, agent_status, cancelled,
    json_schema, optional_generation_id, optional_id, optional_object, suspended,
};
use crate::api::wire::stand_in::StandInView;

/// Default number of messages of a conversation that the model sees.
const CONTEXT_LIMIT_DEFAULT: u32 = 10;

/// Item of `GET /agents`.
pub type AgentView<'a> = AgentFields<'a, ToolView>;

/// An agent. The list shows its tools, the detail only their names.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
#[serde(rename_all = "camelCase")]
pub struct AgentFields<'a, T> {
    id: &'a str,
    name: &'a str,
    description: &'a str,
    #[schema(schema_with = agent_status)]
    status: &'static str,
    model: &'a str,
    tools: Vec<T>,
    sub_agents: Vec<SubAgentView<'a>>,
    #[schema(required)]
    memory: Option<MemoryView>,
    is_telemetry_enabled: bool,
}

/// Current status of an agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentStatus {
    /// True if it has a running generation.
    pub is_working: bool,
    /// True if telemetry is sent to a collector.
    pub is_telemetry_enabled: bool,
}

/// A tool of an agent.
#[derive(Debug, Clone)]
pub struct ToolView(Arc<ToolDefinition>);

#[derive(Serialize, ToSchema)]
#[schema(as = AgentTool)]
struct ToolFields<'a> {
    name: &'a str,
    description: &'a str,
    #[schema(schema_with = json_schema)]
    parameters: &'a Value,
}

impl PartialSchema for ToolView {
    fn schema() -> RefOr<Schema> {
        ToolFields::schema()
    }
}

impl ToSchema for ToolView {
    fn name() -> Cow<'static, str> {
        ToolFields::name()
    }
}

impl Serialize for ToolView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolSpec { name, description, parameters } = &self.0.spec;
        ToolFields { name, description, parameters }.serialize(serializer)
    }
}

/// An agent that another one can delegate tasks to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SubAgent)]
pub struct SubAgentView<'a> {
    id: &'a str,
    name: &'a str,
    description: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentMemory)]
struct MemoryView {
    config: MemoryConfigView,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentMemoryConfig)]
#[serde(rename_all = "camelCase")]
struct MemoryConfigView {
    context_limit: u32,
}

impl<'a> AgentView<'a> {
    /// Shows an agent with its current status.
    pub fn of(agent: &'a AgentDefinition, registry: &'a Registry, status: AgentStatus) -> Self {
        let tools = tools_of(agent, registry);
        Self::with_tools(agent, registry, status, tools)
    }
}

impl<'a, T> AgentFields<'a, T> {
    fn with_tools(
        agent: &'a AgentDefinition,
        registry: &'a Registry,
        now: AgentStatus,
        tools: Vec<T>,
    ) -> Self {
        let sub_agents = agent.sub_agents.iter().filter_map(|id| registry.agents.get(id));
        let sub_agent = |AgentDefinition { id, name, description, .. }: &'a AgentDefinition| {
            SubAgentView { id, name, description }
        };
        Self {
            id: &agent.id,
            name: &agent.name,
            description: &agent.description,
            status: if now.is_working { "working" } else { "idle" },
            model: agent.model.fixed().map_or("dynamic", String::as_str),
            tools,
            sub_agents: sub_agents.map(|agent| sub_agent(agent)).collect(),
            memory: agent.memory.then_some(MemoryView {
                config: MemoryConfigView { context_limit: CONTEXT_LIMIT_DEFAULT },
            }),
            is_telemetry_enabled: now.is_telemetry_enabled,
        }
    }

    /// Returns the id of the agent.
    pub fn id(&self) -> &str {
        self.id
    }

    /// Returns the description of the agent.
    pub fn description(&self) -> &str {
        self.description
    }
}

/// Returns the tools of an agent; none if one of them is missing, whose generations fail and name
/// it.
fn tools_of(agent: &AgentDefinition, registry: &Registry) -> Vec<ToolView> {
    let tools = registry.tools_of(agent).unwrap_or_default();
    tools.into_iter().map(ToolView).collect()
}

/// `GET /agents/:id`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentDetail)]
#[serde(rename_all = "camelCase")]
pub struct AgentDetailView<'a> {
    #[serde(flatten)]
    agent: AgentFields<'a, String>,
    tool_details: Vec<ToolView>,
}

impl<'a> AgentDetailView<'a> {
    /// Shows an agent with the details of its tools.
    pub fn of(agent: &'a AgentDefinition, registry: &'a Registry, status: AgentStatus) -> Self {
        let tool_details = tools_of(agent, registry);
        let names = tool_details.iter().map(|ToolView(tool)| tool.spec.name.clone()).collect();
        let agent = AgentFields::with_tools(agent, registry, status, names);
        Self { agent, tool_details }
    }
}

/// Response of `POST /agents/:id/text`.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GeneratedText)]
#[serde(rename_all = "camelCase")]
pub struct TextView<'a> {
    text: &'a str,
    #[schema(value_type = UsageShape)]
    usage: Usage,
    #[schema(value_type = FinishReasonShape)]
    finish_reason: FinishReason,
    #[schema(value_type = Vec<ToolCallShape>)]
    tool_calls: &'a [ToolCall],
    #[schema(value_type = Vec<ToolResultShape>)]
    tool_results: &'a [ToolResult],
    answered_by: Option<StandInView<'a>>,
    /// Only while the generation waits for people, as the fields below.
    generation_id: Option<&'a str>,
    #[schema(schema_with = suspended, required = false)]
    status: Option<&'static str>,
    /// The generation continues once all of them are answered.
    asks: Option<Vec<PendingAskView<'a>>>,
}

/// Response of `POST /agents/:id/object` while the generation waits for people.
#[derive(Debug, Serialize)]
pub struct WaitingObjectView<'a> {
    /// Always null: there is no object before the answers.
    object: (),
    #[serde(flatten)]
    text: TextView<'a>,
}

impl<'a> WaitingObjectView<'a> {
    /// Shows a generation that has no object yet.
    pub fn of(generation: &'a Generation) -> Self {
        Self { object: (), text: TextView::of(generation) }
    }
}

impl<'a> TextView<'a> {
    /// Shows the answer of an agent.
    pub fn of(generation: &'a Generation) -> Self {
        let is_suspended = generation.is_suspended();
        Self {
            text: &generation.text,
            usage: generation.usage,
            finish_reason: generation.finish_reason,
            tool_calls: &generation.tool_calls,
            tool_results: &generation.tool_results,
            answered_by: generation.stand_in.as_deref().map(StandInView::of),
            generation_id: is_suspended.then_some(&generation.id),
            status: is_suspended.then_some("suspended"),
            asks: is_suspended.then(|| PendingAskView::all(&generation.asks)),
        }
    }
}

/// Response to the cancellation of a generation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CancelledGeneration)]
#[serde(rename_all = "camelCase")]
pub struct CancelledGenerationView<'a> {
    generation_id: &'a str,
    #[schema(schema_with = cancelled)]
    status: &'static str,
}

impl<'a> CancelledGenerationView<'a> {
    /// Shows that a generation has been cancelled.
    pub fn of(generation_id: &'a str) -> Self {
        Self { generation_id, status: "cancelled" }
    }
}

/// Body of a request to an agent.
#[derive(Debug, Deserialize)]
pub struct GenerationBody {
    #[serde(default, deserialize_with = "present")]
    pub input: Option<Value>,
    /// JSON Schema of the requested object.
    #[serde(default, deserialize_with = "present")]
    pub schema: Option<Value>,
    #[serde(default)]
    pub options: Option<Object<GenerationOptions>>,
    /// Chat body of the AI SDK: the whole conversation, in place of `input`.
    #[serde(default, deserialize_with = "present")]
    pub messages: Option<Value>,
    /// Chat body of the AI SDK: the id of the chat.
    #[serde(default, deserialize_with = "present")]
    pub id: Option<Value>,
}

/// `options` of a generation request. Defaults are given in words: generators of clients treat a
/// property with a `default` as always present.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerationOptions {
    /// User of the request; overridden by that of a token.
    #[schema(schema_with = optional_id)]
    pub user_id: Option<String>,
    /// Id of the generation, so that it can be cancelled before its first output. An id that is in
    /// use is refused.
    #[schema(schema_with = optional_generation_id)]
    pub generation_id: Option<String>,
    /// Conversation that the agent continues.
    #[schema(schema_with = optional_id)]
    pub conversation_id: Option<String>,
    /// True if a chat continues when its client disconnects, so that its stream can be attached to.
    /// Default: `chat.resumable` of the agent. Only for chats with a conversation.
    pub resumable: Option<bool>,
    /// Number of messages of the conversation that the model sees. Default: 10.
    #[schema(value_type = Option<u64>, minimum = 0, maximum = 9007199254740991_u64)]
    pub context_limit: Option<f64>,
    /// Maximum number of turns of the model.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9007199254740991_u64)]
    pub max_steps: Option<f64>,
    /// Default: 0.7.
    #[schema(minimum = 0, maximum = 1)]
    pub temperature: Option<f64>,
    /// Default: 4000.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9007199254740991_u64)]
    pub max_output_tokens: Option<f64>,
    /// Default: 1.
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Default: 0.
    #[schema(minimum = 0, maximum = 2)]
    pub frequency_penalty: Option<f64>,
    /// Default: 0.
    #[schema(minimum = 0, maximum = 2)]
    pub presence_penalty: Option<f64>,
    #[schema(
        value_type = Option<i64>,
        minimum = -9007199254740991_i64,
        maximum = 9007199254740991_i64
    )]
    pub seed: Option<f64>,
    pub stop_sequences: Option<Vec<String>>,
    /// `false`: at most one call of a tool per answer of the model, if its provider knows this.
    pub parallel_tool_calls: Option<bool>,
    /// Options by provider, or directly for the provider of the model.
    #[schema(schema_with = optional_object)]
    pub provider_options: Option<Map<String, Value>>,
    /// Context for the instructions, the model and the tools of the agent.
    #[schema(schema_with = optional_object)]
    pub context: Option<Map<String, Value>>,
    /// Alternative place for the ids of user and conversation.
    #[schema(value_type = Option<MemoryOptions>)]
    pub memory: Option<Object<MemoryOptions>>,
}

/// `options.memory` of a generation request.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = GenerationMemoryOptions)]
#[serde(rename_all = "camelCase")]
pub struct MemoryOptions {
    #[schema(schema_with = optional_id)]
    pub user_id: Option<String>,
    #[schema(schema_with = optional_id)]
    pub conversation_id: Option<String>,
}

#[cfg(test)]
mod tests;
