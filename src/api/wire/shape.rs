//! Shapes of the runtime's own types on the wire, and of fields that hold one of a few words: what
//! the API document says of them.

use greenroom_actors::domain::definition::StepType;
use greenroom_actors::domain::failure::ErrorKind;
use greenroom_actors::domain::step_state::StepStatus;
use greenroom_actors::ports::store::Status;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use crate::api::wire::agent::StandInView;
use crate::api::wire::why::{MOVERS, WAIT_KINDS};

/// No control character, no slash, and not dots that a path would lose.
pub const ID_PATTERN: &str = r"^(?!\.{1,2}$)[^\u0000-\u001f\u007f-\u009f/]+$";
/// What names an execution.
pub const EXECUTION_ID_PATTERN: &str = r"^(?!\.+$)[A-Za-z0-9._:-]{1,128}$";
/// The same for a generation. Those of steps are not to be chosen.
const GENERATION_ID_PATTERN: &str = r"^(?!\.+$|step-)[A-Za-z0-9._:-]{1,128}$";

/// Tokens of a whole run, all its turns and sub-agents together.
#[derive(Debug, ToSchema)]
#[schema(as = Usage, rename_all = "camelCase")]
pub struct UsageShape {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    pub cached_input_tokens: u64,
    pub reasoning_tokens: u64,
}

/// Why a generation ended.
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

/// A tool that the model asked for.
#[derive(Debug, ToSchema)]
#[schema(as = ToolCall, rename_all = "camelCase")]
pub struct ToolCallShape {
    pub tool_call_id: String,
    pub tool_name: String,
    /// The arguments; a text when the model gave something that is no JSON.
    pub input: Value,
}

/// What a tool gave: `output`, or `error` with a message.
#[derive(Debug, ToSchema)]
#[schema(as = ToolResult, rename_all = "camelCase")]
pub struct ToolResultShape {
    pub tool_call_id: String,
    pub tool_name: String,
    pub input: Value,
    #[schema(required = false)]
    pub output: Value,
    #[schema(nullable = false)]
    pub error: Option<String>,
}

/// One turn of a generation: what the model said, and what its tools gave.
#[derive(Debug, ToSchema)]
#[schema(as = GenerationStep, rename_all = "camelCase")]
pub struct GenerationStepShape {
    pub text: String,
    #[schema(nullable = false)]
    pub reasoning: Option<String>,
    pub tool_calls: Vec<ToolCallShape>,
    pub tool_results: Vec<ToolResultShape>,
    pub usage: UsageShape,
    pub finish_reason: FinishReasonShape,
    /// Left out where the model answered that is configured.
    #[schema(nullable = false)]
    pub answered_by: Option<StandInView<'static>>,
}

/// Where a generation stands.
#[derive(Debug, ToSchema)]
#[schema(as = GenerationStatus, rename_all = "lowercase")]
pub enum GenerationStatusShape {
    Working,
    Completed,
    Error,
    Cancelled,
}

/// Who says a message.
#[derive(Debug, ToSchema)]
#[schema(as = Role, rename_all = "lowercase")]
pub enum RoleShape {
    System,
    User,
    Assistant,
    Tool,
}

/// One of these words.
pub(super) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// Where an execution stands.
pub(super) fn execution_status() -> Object {
    one_of(Status::ALL.map(Status::as_str))
}

/// What kind of thing an execution waits for.
pub(super) fn wait_kind() -> Object {
    one_of(WAIT_KINDS)
}

/// Who or what can move an execution on.
pub(super) fn mover() -> Object {
    one_of(MOVERS)
}

/// What kind of failure it was.
pub(super) fn error_kind() -> Object {
    one_of(ErrorKind::ALL.map(ErrorKind::as_str))
}

/// Where a step stands.
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

/// The kind of a step.
pub(super) fn step_kind() -> Object {
    one_of(StepType::ALL.map(StepType::name))
}

/// Where an agent stands.
pub(super) fn agent_status() -> Object {
    one_of(["idle", "working"])
}

/// Where a workflow stands.
pub(super) fn workflow_status() -> Object {
    one_of(["idle", "running"])
}

/// `cancelled`.
pub(super) fn cancelled() -> Object {
    one_of([Status::Cancelled.as_str()])
}

/// `suspended`.
pub(super) fn suspended() -> Object {
    one_of([Status::Suspended.as_str()])
}

/// What a working memory is of.
pub(super) fn memory_scope() -> Object {
    one_of(["conversation"])
}

/// An object with any keys.
pub(super) fn any_object() -> Object {
    ObjectBuilder::new().schema_type(Type::Object).build()
}

/// The same or `null`, which counts as nothing.
pub(super) fn optional_object() -> Object {
    ObjectBuilder::new().schema_type(or_null(Type::Object)).build()
}

/// A JSON Schema: an object, or `true` or `false`.
pub(super) fn json_schema() -> Object {
    let types = SchemaType::from_iter([Type::Object, Type::Boolean]);
    ObjectBuilder::new().schema_type(types).description(Some("A JSON Schema.")).build()
}

/// A JSON Schema, or `null` where there is none.
pub(super) fn nullable_schema() -> Object {
    let types = SchemaType::from_iter([Type::Object, Type::Boolean, Type::Null]);
    let description = "A JSON Schema, or null where there is none.";
    ObjectBuilder::new().schema_type(types).description(Some(description)).build()
}

/// The id of a user or of a conversation.
pub(super) fn optional_id() -> Object {
    ObjectBuilder::new()
        .schema_type(or_null(Type::String))
        .min_length(Some(1))
        .max_length(Some(200))
        .pattern(Some(ID_PATTERN))
        .build()
}

/// The id of a generation that its caller chooses.
pub(super) fn optional_generation_id() -> Object {
    ObjectBuilder::new()
        .schema_type(or_null(Type::String))
        .pattern(Some(GENERATION_ID_PATTERN))
        .build()
}

/// The id of an execution that its caller chooses.
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
