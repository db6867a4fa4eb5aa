//! Refusals of the service: the only place that chooses their status, text and code.

mod ask;
pub(crate) mod code;
mod from;
mod generation;
mod place;
mod shortage;
mod system;

use std::borrow::Cow;
use std::sync::Arc;

use greenroom_actors::domain::failure::shortened;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{GenerationStatus, Status};
use greenroom_actors::runtime::possible_steps;

use crate::api::wire::problem::RefusalDetails;
use crate::nearest::nearest;

pub use self::ask::AskRefusal;
pub use self::code::ErrorCode;
pub use self::generation::{GenerationFailure, stream_failure};
pub use self::shortage::Shortage;
pub use self::system::SystemFailure;

/// An object that is recorded or waits to be, although the request that made it is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    Execution(ExecutionId),
    Generation(Arc<str>),
}

/// A refusal of the service.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    #[error("Not found: {method} {path}")]
    PathNotFound { method: String, path: String },
    #[error("Method {method} is not allowed here")]
    MethodNotAllowed { method: String, allow: String },
    #[error("Origin not allowed")]
    OriginNotAllowed,
    /// `Host` names no known address of the server.
    #[error("Host not allowed")]
    HostNotAllowed,

    #[error("Authentication required")]
    Unauthenticated,
    #[error("Token expired")]
    TokenExpired,
    /// Reason, in our words or those of an added provider of identity.
    #[error("Invalid token: {0}")]
    TokenInvalid(Cow<'static, str>),
    /// The keys that verify tokens are unavailable.
    #[error("The token cannot be checked at the moment")]
    TokenUnchecked,
    /// The roles, of which one is required.
    #[error("One of these roles is required: {0}")]
    RoleMissing(String),
    #[error("Only the user itself may do this")]
    NotYours,
    #[error("Only callers on this machine, or with a token, may do this")]
    LocalOnly,

    #[error("Invalid JSON: {0}")]
    InvalidJson(String),
    /// `path: what`, or only `what` if it concerns the whole body.
    #[error("Invalid request body: {0}")]
    InvalidBody(String),
    /// A member of the body that asks for what the server does not do.
    #[error("{place} is not supported: {what}")]
    Unsupported { place: String, what: &'static str },
    #[error("Invalid query parameter {name}: {what}")]
    InvalidQuery { name: String, what: String },
    #[error("Invalid header {name}: {what}")]
    InvalidHeader { name: &'static str, what: String },
    #[error("Invalid request: {0}")]
    InvalidRequest(String),
    /// The body was cut short or is malformed.
    #[error("Invalid request: the body {0}")]
    BodyBroken(&'static str),
    #[error("Request body was not received in time")]
    BodyTooSlow,
    #[error("Request body is larger than {bytes_max} bytes")]
    BodyTooLarge { bytes_max: usize },
    #[error("Request is too large to be passed on to the server that has the execution")]
    TooLargeToPassOn,
    #[error("Content type {0} is not supported, send application/json")]
    UnsupportedMediaType(String),
    #[error("Content type is not supported, send application/x-www-form-urlencoded")]
    FormOnly,
    #[error("Content encoding {0} is not supported, send the body as it is")]
    UnsupportedEncoding(String),
    /// Missing part of the WebSocket handshake.
    #[error("This route is a WebSocket: {0}")]
    WebSocketOnly(&'static str),
    /// Refusal of an added handler, with a status 4xx.
    #[error("{text}")]
    ByHandler { status: u16, text: String },

    #[error("Workflow {} not found", .0.name)]
    WorkflowNotFound(UnknownName),
    #[error("Input validation failed: {0}")]
    InputInvalid(String),
    /// Names the step that failed; the reason is in the state of the execution.
    #[error("Failed to execute workflow")]
    ExecutionFailed { id: ExecutionId, step_id: Option<Arc<str>>, path: Option<Arc<str>> },
    #[error("Execution {0} not found")]
    ExecutionNotFound(String),
    #[error("Execution {0} already exists")]
    ExecutionExists(ExecutionId),
    #[error("Execution {id} is already {}", .status.as_str())]
    ExecutionAlready { id: ExecutionId, status: Status },
    #[error("Execution {0} compensates its completed steps, and ends afterwards")]
    ExecutionCompensates(ExecutionId),
    #[error("Execution {0} is not suspended")]
    NotSuspended(ExecutionId),
    #[error("Step {} not found", .0.name)]
    StepNotFound(UnknownName),
    #[error("Step {0} is not suspended")]
    StepNotSuspended(String),
    #[error("Step {step} is suspended more than once: {paths}")]
    StepAmbiguous { step: String, paths: String },
    #[error("Several steps are waiting: {0}; name one in options.stepId")]
    SeveralStepsWaiting(String),
    #[error("Step {0} waits for answers to what its agent asks; answer them in the inbox")]
    StepAsks(String),
    /// `why`: it no longer waits, or waits at another step than `options.stepId`.
    #[error("Suspension {id} {why}")]
    SuspensionPassed { id: String, why: String },
    #[error("Cannot replay from step {step}{}", possible_steps(.from))]
    StepNotReplayable { step: String, from: Vec<Arc<str>> },
    #[error("No step failed; name one in stepId{}", possible_steps(.0))]
    NoStepFailed(Vec<Arc<str>>),
    /// Without a step, what the skipped compensation left as it is would happen twice.
    #[error(
        "A person skipped the compensation of {path}; name a step in stepId{}",
        possible_steps(.from)
    )]
    CompensationSkipped { path: Arc<str>, from: Vec<Arc<str>> },
    #[error("The record does not match the current definition: {0}")]
    DefinitionDiffers(String),
    #[error("Step {0} does not suspend; remove resumeData")]
    StepDoesNotSuspend(String),
    #[error("Resume data validation failed: {0}")]
    ResumeDataInvalid(String),
    #[error("Idempotency-Key was used with another body")]
    KeyReused,
    #[error(transparent)]
    Ask(AskRefusal),

    #[error("Tool {} not found", .0.name)]
    ToolNotFound(UnknownName),
    #[error("MCP server {} not found", .0.name)]
    ServerNotFound(UnknownName),
    /// The tool of the server.
    #[error("Tool {0} does not have this definition: it has changed again")]
    ToolChanged(String),
    #[error("A call of tool {tool} with these arguments needs the approval of {to}")]
    ApprovalNeeded { tool: String, to: String },
    #[error("Invalid tool input: {0}")]
    ToolInputInvalid(String),
    /// Reason, in our words or those of the tool.
    #[error("Failed to execute tool: {0}")]
    ToolFailed(String),

    /// The possible ids, or that there are none.
    #[error("agentId is required: {0}")]
    AgentRequired(String),
    #[error("Agent {0} has no memory")]
    NoMemory(String),
    #[error("Conversation not found")]
    ConversationNotFound,
    #[error("Conversation already exists: {0}")]
    ConversationExists(String),

    #[error("Trace {0} not found")]
    TraceNotFound(String),
    #[error("Span {0} not found")]
    SpanNotFound(String),

    #[error("Model {} not found", .0.name)]
    ModelNotFound(UnknownName),
    #[error("Agent {} not found", .0.name)]
    AgentNotFound(UnknownName),
    #[error("Invalid schema: {0}")]
    SchemaInvalid(String),
    #[error("Failed to generate {}: {message}", .product.as_str())]
    GenerationFailed {
        /// None if it has not begun.
        id: Option<Arc<str>>,
        product: Product,
        message: String,
        cause: GenerationFailure,
    },
    #[error("Generation {0} not found")]
    GenerationNotFound(String),
    #[error("Generation {0} already exists")]
    GenerationExists(String),
    #[error("Generation {id} is already {}", generation_status(*.status))]
    GenerationAlready { id: String, status: GenerationStatus },

    #[error(transparent)]
    System(SystemFailure),

    #[error("The server is shutting down")]
    Draining { recorded: Option<Recorded> },
    #[error("The server is busy")]
    Busy { execution: Option<ExecutionId> },
    /// Nothing of it was recorded if no execution is named.
    #[error("The server of the execution has changed, or does not answer")]
    ExecutionMoved { execution: Option<ExecutionId> },
    #[error("Another server cannot be reached")]
    ServerUnreachable,
    #[error("{0}")]
    AtCapacity(Shortage),
    /// The cause goes to the log, not to the caller.
    #[error("The store is not available")]
    StoreUnavailable { recorded: Option<Recorded> },
    /// Names the object of the record. The cause goes to the log.
    #[error("The record of {0} cannot be read: the stored data is invalid")]
    RecordCorrupt(String),
    #[error("Internal server error")]
    Internal,
}

/// Longest unknown name that a refusal repeats.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// A name that refers to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    pub name: String,
    /// Nearest known name.
    pub suggestion: Option<String>,
}

impl UnknownName {
    /// Looks for the nearest known name.
    pub fn among<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        // a caller chooses it, and it may be as long as a body
        let name = shortened(name, NAME_BYTES_MAX);
        Self { name: name.to_owned(), suggestion: nearest(name, known) }
    }
}

impl From<String> for UnknownName {
    fn from(name: String) -> Self {
        Self { name: shortened(&name, NAME_BYTES_MAX).to_owned(), suggestion: None }
    }
}

/// Output that was requested of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    Text,
    Object,
}

impl Product {
    fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Object => "object",
        }
    }
}

impl ApiError {
    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        if let Self::ByHandler { status, .. } = self { *status } else { self.code().status() }
    }

    /// Returns seconds for `Retry-After`, if retrying can help.
    pub fn retry_after_s(&self) -> Option<u32> {
        self.code().retry_after_s()
    }

    /// Returns the machine-readable code, sent as `x-error-code`.
    #[expect(clippy::too_many_lines, reason = "a table")]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::PathNotFound { .. } => ErrorCode::NotFound,
            Self::MethodNotAllowed { .. } => ErrorCode::MethodNotAllowed,
            Self::OriginNotAllowed => ErrorCode::OriginNotAllowed,
            Self::HostNotAllowed => ErrorCode::HostNotAllowed,
            Self::Unauthenticated => ErrorCode::AuthRequired,
            Self::TokenExpired => ErrorCode::TokenExpired,
            Self::TokenInvalid(_) => ErrorCode::TokenInvalid,
            Self::TokenUnchecked => ErrorCode::AuthUnavailable,
            Self::RoleMissing(_) => ErrorCode::RoleMissing,
            Self::NotYours => ErrorCode::NotYours,
            Self::LocalOnly => ErrorCode::LocalOnly,
            Self::System(failure) => failure.code(),
            Self::InvalidJson(_) => ErrorCode::JsonInvalid,
            Self::InvalidBody(_) => ErrorCode::BodyInvalid,
            Self::Unsupported { .. } => ErrorCode::ParameterUnsupported,
            Self::InvalidQuery { .. } => ErrorCode::QueryInvalid,
            Self::InvalidHeader { .. } => ErrorCode::HeaderInvalid,
            Self::InvalidRequest(_) | Self::BodyBroken(_) => ErrorCode::RequestInvalid,
            Self::WebSocketOnly(_) => ErrorCode::UpgradeRequired,
            Self::ByHandler { .. } => ErrorCode::RequestRefused,
            Self::BodyTooSlow => ErrorCode::BodyTooSlow,
            Self::BodyTooLarge { .. } | Self::TooLargeToPassOn => ErrorCode::BodyTooLarge,
            Self::UnsupportedEncoding(_) => ErrorCode::EncodingUnsupported,
            Self::UnsupportedMediaType(_) | Self::FormOnly => ErrorCode::MediaTypeUnsupported,
            Self::WorkflowNotFound(_) => ErrorCode::WorkflowNotFound,
            Self::InputInvalid(_) => ErrorCode::InputInvalid,
            Self::ExecutionFailed { .. } => ErrorCode::ExecutionFailed,
            Self::ExecutionNotFound(_) => ErrorCode::ExecutionNotFound,
            Self::ExecutionExists(_) => ErrorCode::ExecutionExists,
            Self::ExecutionAlready { .. } => ErrorCode::ExecutionNotRunning,
            Self::ExecutionCompensates(_) => ErrorCode::ExecutionCompensates,
            Self::NotSuspended(_) => ErrorCode::NotSuspended,
            Self::StepNotFound(_) => ErrorCode::StepNotFound,
            Self::StepNotSuspended(_) => ErrorCode::StepNotSuspended,
            Self::StepAmbiguous { .. } => ErrorCode::StepAmbiguous,
            Self::SeveralStepsWaiting(_) => ErrorCode::StepAmbiguous,
            Self::StepAsks(_) => ErrorCode::StepAsks,
            Self::SuspensionPassed { .. } => ErrorCode::SuspensionPassed,
            Self::StepNotReplayable { .. }
            | Self::NoStepFailed(_)
            | Self::CompensationSkipped { .. } => ErrorCode::StepNotReplayable,
            Self::DefinitionDiffers(_) => ErrorCode::DefinitionDiffers,
            Self::StepDoesNotSuspend(_) => ErrorCode::StepDoesNotSuspend,
            Self::ResumeDataInvalid(_) => ErrorCode::ResumeDataInvalid,
            Self::KeyReused => ErrorCode::IdempotencyKeyReused,
            Self::Ask(refusal) => refusal.code(),
            Self::ToolNotFound(_) => ErrorCode::ToolNotFound,
            Self::ServerNotFound(_) => ErrorCode::ServerNotFound,
            Self::ToolChanged(_) => ErrorCode::ToolChanged,
            Self::ApprovalNeeded { .. } => ErrorCode::NotAssigned,
            Self::ToolInputInvalid(_) => ErrorCode::ToolInputInvalid,
            Self::ToolFailed(_) => ErrorCode::ToolFailed,
            Self::AgentRequired(_) => ErrorCode::AgentRequired,
            Self::NoMemory(_) => ErrorCode::MemoryOff,
            Self::ConversationNotFound => ErrorCode::ConversationNotFound,
            Self::ConversationExists(_) => ErrorCode::ConversationExists,
            Self::TraceNotFound(_) => ErrorCode::TraceNotFound,
            Self::SpanNotFound(_) => ErrorCode::SpanNotFound,
            Self::ModelNotFound(_) => ErrorCode::ModelNotFound,
            Self::AgentNotFound(_) => ErrorCode::AgentNotFound,
            Self::SchemaInvalid(_) => ErrorCode::SchemaInvalid,
            Self::GenerationFailed { cause, .. } => cause.code(),
            Self::GenerationNotFound(_) => ErrorCode::GenerationNotFound,
            Self::GenerationExists(_) => ErrorCode::GenerationExists,
            Self::GenerationAlready { .. } => ErrorCode::GenerationNotRunning,
            Self::Draining { .. } => ErrorCode::Draining,
            Self::Busy { .. } => ErrorCode::Busy,
            Self::ExecutionMoved { .. } => ErrorCode::ExecutionMoved,
            Self::ServerUnreachable => ErrorCode::ServerUnreachable,
            Self::AtCapacity(_) => ErrorCode::AtCapacity,
            Self::StoreUnavailable { .. } => ErrorCode::StoreUnavailable,
            Self::RecordCorrupt(_) => ErrorCode::RecordCorrupt,
            Self::Internal => ErrorCode::Internal,
        }
    }

    /// Returns the execution that the refusal concerns, if it is known to exist.
    pub fn execution_id(&self) -> Option<&ExecutionId> {
        if let Self::Busy { execution } | Self::ExecutionMoved { execution } = self {
            return execution.as_ref();
        }
        if let Self::StoreUnavailable { recorded } | Self::Draining { recorded } = self
            && let Some(Recorded::Execution(id)) = recorded
        {
            return Some(id);
        }
        if let Self::ExecutionFailed { id, .. }
        | Self::ExecutionExists(id)
        | Self::ExecutionCompensates(id)
        | Self::NotSuspended(id)
        | Self::ExecutionAlready { id, .. } = self
        {
            Some(id)
        } else {
            None
        }
    }

    /// Returns the details that are sent beside the text.
    pub fn details(&self) -> Option<RefusalDetails> {
        if let Self::ExecutionFailed { id, step_id, path } = self {
            return Some(RefusalDetails {
                execution_id: Some(id.to_string()),
                step_id: step_id.clone(),
                path: path.clone(),
                did_you_mean: None,
            });
        }
        let (Self::WorkflowNotFound(unknown)
        | Self::AgentNotFound(unknown)
        | Self::ModelNotFound(unknown)
        | Self::ToolNotFound(unknown)
        | Self::ServerNotFound(unknown)
        | Self::StepNotFound(unknown)) = self
        else {
            return None;
        };
        let did_you_mean = Some(unknown.suggestion.clone()?);
        Some(RefusalDetails { did_you_mean, ..RefusalDetails::default() })
    }

    /// Returns the generation that the refusal concerns, if it is known to exist.
    pub fn generation_id(&self) -> Option<&str> {
        if let Self::GenerationFailed { id: Some(id), .. }
        | Self::Draining { recorded: Some(Recorded::Generation(id)) }
        | Self::StoreUnavailable { recorded: Some(Recorded::Generation(id)) } = self
        {
            return Some(id);
        }
        if let Self::GenerationExists(id) | Self::GenerationAlready { id, .. } = self {
            Some(id)
        } else {
            None
        }
    }

    /// Returns the value of `Allow`.
    pub fn allow(&self) -> Option<&str> {
        if let Self::MethodNotAllowed { allow, .. } = self { Some(allow) } else { None }
    }

    /// Returns the value of `WWW-Authenticate` (RFC 6750, section 3).
    pub fn challenge(&self) -> Option<&'static str> {
        if matches!(self, Self::TokenExpired | Self::TokenInvalid(_)) {
            return Some("Bearer error=\"invalid_token\"");
        }
        if matches!(self, Self::RoleMissing(_)) {
            return Some("Bearer error=\"insufficient_scope\"");
        }
        (self.status() == 401).then_some("Bearer")
    }
}

fn generation_status(status: GenerationStatus) -> &'static str {
    match status {
        GenerationStatus::Working => "working",
        GenerationStatus::Completed => "completed",
        GenerationStatus::Error => "error",
        GenerationStatus::Cancelled => "cancelled",
        GenerationStatus::Suspended => "suspended",
    }
}

#[cfg(test)]
mod tests;
