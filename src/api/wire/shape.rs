//! OpenAPI schemas of types of the runtime and of enumerated fields.

use greenroom_actors::domain::definition::StepType;
use greenroom_actors::domain::failure::ErrorKind;
use greenroom_actors::domain::step_state::StepStatus;
use greenroom_actors::ports::store::Status;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use crate::api::wire::stand_in::StandInView;

/// Ids without control characters and slashes, and not `.` or `..`, which paths drop.
pub const ID_PATTERN: &str = r"^(?!\.{1,2}$)[^\u0000-\u001f\u007f-\u009f/]+$";
/// Ids of executions.
pub const EXECUTION_ID_PATTERN: &str = r"^(?!\.+$)[A-Za-z0-9._:-]{1,128}$";
/// Ids of generations that callers may choose; the prefix `step-` is reserved.
const GENERATION_ID_PATTERN: &str = r"^(?!\.+$|step-)[A-Za-z0-9._:-]{1,128}$";

/// Tokens of a generation, including all its turns and sub-agents.
#[derive(Debug, ToSchema)]
#[schema(as = Usage, rename_all = "camelCase")]
pub struct UsageShape {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    pub cached_input_tokens: u64,
    pub reasoning_tokens: u64,
}

/// Reason for the end of a generation.
#[derive(Debug, ToSchema)]
#[schema(as = FinishReason, rename_all = "kebab-case")]
pub enum FinishReasonShape {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    Error,
    Other,
}

/// A tool call of the model.
#[derive(Debug, ToSchema)]
#[schema(as = ToolCall, rename_all = "camelCase")]
pub struct ToolCallShape {
    pub tool_call_id: String,
    pub tool_name: String,
    /// The arguments; a string if the model sent invalid JSON.
    pub input: Value,
}

/// Result of a tool: `output`, `error` with a message, or `denied` with the reason if the call was
/// refused.
#[derive(Debug, ToSchema)]
#[schema(as = ToolResult, rename_all = "camelCase")]
pub struct ToolResultShape {
    pub tool_call_id: String,
    pub tool_name: String,
    pub input: Value,
    #[schema(required = false)]
    pub output: Value,
    pub error: Option<String>,
    pub denied: Option<String>,
}

/// A turn of a generation: the answer of the model and the results of its tools.
#[derive(Debug, ToSchema)]
#[schema(as = GenerationStep, rename_all = "camelCase")]
pub struct GenerationStepShape {
    pub text: String,
    pub reasoning: Option<String>,
    pub tool_calls: Vec<ToolCallShape>,
    pub tool_results: Vec<ToolResultShape>,
    pub usage: UsageShape,
    pub finish_reason: FinishReasonShape,
    /// Absent if the configured model answered.
    pub answered_by: Option<StandInView<'static>>,
}

/// Status of a generation.
#[derive(Debug, ToSchema)]
#[schema(as = GenerationStatus, rename_all = "lowercase")]
pub enum GenerationStatusShape {
    Working,
    Completed,
    Error,
    Cancelled,
    Suspended,
}

/// Role of a message.
#[derive(Debug, ToSchema)]
#[schema(as = Role, rename_all = "lowercase")]
pub enum RoleShape {
    System,
    User,
    Assistant,
    Tool,
}

/// Returns the schema of an enumeration.
pub(super) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// Status of an execution.
pub(super) fn execution_status() -> Object {
    one_of(Status::ALL.map(Status::as_str))
}

/// Kind of a failure.
pub(super) fn error_kind() -> Object {
    one_of(ErrorKind::ALL.map(ErrorKind::as_str))
}

/// Status of a step.
pub(super) fn step_status() -> Object {
    let all = [
        StepStatus::Running,
        StepStatus::Suspended,
        StepStatus::Sleeping,
        StepStatus::Completed,
        StepStatus::Failed,
        StepStatus::Skipped,
        StepStatus::Cancelled,
    ];
    one_of(all.map(StepStatus::as_str))
}

/// Type of a step.
pub(super) fn step_kind() -> Object {
    one_of(StepType::ALL.map(StepType::name))
}

/// Status of an agent.
pub(super) fn agent_status() -> Object {
    one_of(["idle", "working"])
}

/// Status of a workflow.
pub(super) fn workflow_status() -> Object {
    one_of(["idle", "running"])
}

/// `cancelled`, or `running`.
pub(super) fn cancelled() -> Object {
    one_of([Status::Cancelled, Status::Running].map(Status::as_str))
}

/// `suspended`.
pub(super) fn suspended() -> Object {
    one_of([Status::Suspended.as_str()])
}

/// Scope of a working memory.
pub(super) fn memory_scope() -> Object {
    one_of(["conversation"])
}

/// An object with any keys.
pub(super) fn any_object() -> Object {
    ObjectBuilder::new().schema_type(Type::Object).build()
}

/// An object with any keys, or `null`.
pub(super) fn optional_object() -> Object {
    ObjectBuilder::new().schema_type(or_null(Type::Object)).build()
}

/// A JSON Schema: an object, or `true` or `false`.
pub(super) fn json_schema() -> Object {
    let types = SchemaType::from_iter([Type::Object, Type::Boolean]);
    ObjectBuilder::new().schema_type(types).description(Some("A JSON Schema.")).build()
}

/// A JSON Schema, or `null` if there is none.
pub(super) fn nullable_schema() -> Object {
    let types = SchemaType::from_iter([Type::Object, Type::Boolean, Type::Null]);
    let description = "A JSON Schema, or null if there is none.";
    ObjectBuilder::new().schema_type(types).description(Some(description)).build()
}

/// Id of a user or a conversation.
pub(super) fn optional_id() -> Object {
    ObjectBuilder::new()
        .schema_type(or_null(Type::String))
        .min_length(Some(1))
        .max_length(Some(200))
        .pattern(Some(ID_PATTERN))
        .build()
}

/// Id of a generation, chosen by its caller.
pub(super) fn optional_generation_id() -> Object {
    ObjectBuilder::new()
        .schema_type(or_null(Type::String))
        .pattern(Some(GENERATION_ID_PATTERN))
        .build()
}

/// Id of an execution, chosen by its caller.
pub(super) fn optional_execution_id() -> Object {
    ObjectBuilder::new()
        .schema_type(or_null(Type::String))
        .pattern(Some(EXECUTION_ID_PATTERN))
        .build()
}

fn or_null(own: Type) -> SchemaType {
    SchemaType::from_iter([own, Type::Null])
}

#[cfg(test)]
mod tests;
