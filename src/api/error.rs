//! Every refusal of the service: the only place where a status, a text and a code are chosen.

mod from;
mod system;

use std::borrow::Cow;
use std::sync::Arc;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::model::ModelErrorKind;
use greenroom_actors::ports::store::{GenerationStatus, Status};

pub use self::system::SystemFailure;

/// Seconds after which a caller may try again when the server is busy.
const RETRY_AFTER_BUSY_S: u32 = 1;
/// Seconds that a restart usually takes.
const RETRY_AFTER_DRAINING_S: u32 = 5;

/// Every refusal that the service can answer with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiError {
    #[error("Not found: {method} {path}")]
    PathNotFound { method: String, path: String },
    #[error("Method {method} is not allowed here")]
    MethodNotAllowed { method: String, allow: String },
    #[error("Origin not allowed")]
    OriginNotAllowed,
    /// A name in `Host` that is not known to be the server's.
    #[error("Host not allowed")]
    HostNotAllowed,

    #[error("Authentication required")]
    Unauthenticated,
    #[error("Token expired")]
    TokenExpired,
    /// Ours or a provider's own words.
    #[error("Invalid token: {0}")]
    TokenInvalid(Cow<'static, str>),
    /// Nobody can say now whether it is good.
    #[error("The token cannot be checked just now")]
    TokenUnchecked,
    /// The roles of which one is needed.
    #[error("One of these roles is required: {0}")]
    RoleMissing(String),
    #[error("Only the user itself may do this")]
    NotYours,
    #[error("Only callers on this machine, or with a token, may do this")]
    LocalOnly,

    #[error("Invalid JSON: {0}")]
    InvalidJson(String),
    /// `path: what`, or only `what` when it is about the whole body.
    #[error("Invalid request body: {0}")]
    InvalidBody(String),
    #[error("Invalid query parameter {name}: {what}")]
    InvalidQuery { name: String, what: String },
    #[error("Invalid header {name}: {what}")]
    InvalidHeader { name: &'static str, what: String },
    #[error("Invalid request: {0}")]
    InvalidRequest(String),
    /// What there is of the body is no body.
    #[error("Invalid request: the body {0}")]
    BodyBroken(&'static str),
    #[error("Request body was not received in time")]
    BodyTooSlow,
    #[error("Request body is larger than {bytes_max} bytes")]
    BodyTooLarge { bytes_max: usize },
    #[error("Content type {0} is not supported, send application/json")]
    UnsupportedMediaType(String),

    #[error("Workflow {0} not found")]
    WorkflowNotFound(String),
    #[error("Input validation failed: {0}")]
    InputInvalid(String),
    #[error("Failed to execute workflow")]
    ExecutionFailed(ExecutionId),
    #[error("Execution {0} not found")]
    ExecutionNotFound(String),
    #[error("Execution {0} already exists")]
    ExecutionExists(ExecutionId),
    #[error("Execution {id} is already {}", .status.as_str())]
    ExecutionAlready { id: ExecutionId, status: Status },
    #[error("Execution {0} is not suspended")]
    NotSuspended(ExecutionId),
    #[error("Step {0} not found")]
    StepNotFound(String),
    #[error("Step {0} is not suspended")]
    StepNotSuspended(String),
    #[error("Step {step} is suspended more than once: {paths}")]
    StepAmbiguous { step: String, paths: String },
    #[error("Resume data validation failed: {0}")]
    ResumeDataInvalid(String),
    #[error("Idempotency-Key was used with another body")]
    KeyReused,

    #[error("Tool {0} not found")]
    ToolNotFound(String),
    #[error("Invalid tool input: {0}")]
    ToolInputInvalid(String),
    /// Ours or the tool's own words.
    #[error("Failed to execute tool: {0}")]
    ToolFailed(String),

    /// What to name, since it does not go without saying.
    #[error("agentId is required: {0}")]
    AgentRequired(String),
    #[error("Agent {0} has no memory")]
    NoMemory(String),
    #[error("Conversation not found")]
    ConversationNotFound,
    #[error("Conversation already exists: {0}")]
    ConversationExists(String),

    #[error("Agent {0} not found")]
    AgentNotFound(String),
    #[error("Invalid schema: {0}")]
    SchemaInvalid(String),
    #[error("Failed to generate {}: {message}", .product.as_str())]
    GenerationFailed {
        /// None of one that has not begun.
        id: Option<Arc<str>>,
        product: Product,
        message: String,
        cause: GenerationFailure,
    },
    #[error("Generation {0} not found")]
    GenerationNotFound(String),
    #[error("Generation {id} is already {}", generation_status(*.status))]
    GenerationAlready { id: String, status: GenerationStatus },

    #[error(transparent)]
    System(SystemFailure),

    #[error("The server is shutting down")]
    Draining { execution: Option<ExecutionId> },
    #[error("The server is busy")]
    Busy,
    /// The cause goes to the log, not to the caller.
    #[error("The store is not available")]
    StoreUnavailable,
    #[error("Internal server error")]
    Internal,
}

/// What an agent was asked for.
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

/// Who is to blame for a text that was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerationFailure {
    Provider(ModelErrorKind),
    /// The agent's own configuration, or an answer that does not meet the schema.
    Agent,
    Cancelled,
}

impl ApiError {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::InvalidJson(_)
            | Self::InvalidBody(_)
            | Self::InvalidQuery { .. }
            | Self::InvalidHeader { .. }
            | Self::InvalidRequest(_)
            | Self::BodyBroken(_)
            | Self::InputInvalid(_)
            | Self::ToolInputInvalid(_)
            | Self::AgentRequired(_)
            | Self::NoMemory(_)
            | Self::ExecutionAlready { .. }
            | Self::StepNotFound(_)
            | Self::StepNotSuspended(_)
            | Self::StepAmbiguous { .. }
            | Self::ResumeDataInvalid(_)
            | Self::SchemaInvalid(_)
            | Self::GenerationAlready { .. } => 400,
            Self::System(failure) => failure.status(),
            Self::Unauthenticated | Self::TokenExpired | Self::TokenInvalid(_) => 401,
            Self::OriginNotAllowed
            | Self::HostNotAllowed
            | Self::RoleMissing(_)
            | Self::NotYours
            | Self::LocalOnly => 403,
            Self::PathNotFound { .. }
            | Self::WorkflowNotFound(_)
            | Self::ToolNotFound(_)
            | Self::ConversationNotFound
            | Self::ExecutionNotFound(_)
            | Self::NotSuspended(_)
            | Self::AgentNotFound(_)
            | Self::GenerationNotFound(_) => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::BodyTooSlow => 408,
            Self::ExecutionExists(_) | Self::KeyReused | Self::ConversationExists(_) => 409,
            Self::BodyTooLarge { .. } => 413,
            Self::UnsupportedMediaType(_) => 415,
            Self::ExecutionFailed(_)
            | Self::GenerationFailed { .. }
            | Self::ToolFailed(_)
            | Self::Internal => 500,
            Self::Draining { .. } | Self::Busy | Self::StoreUnavailable | Self::TokenUnchecked => {
                503
            }
        }
    }

    /// The machine-readable code, sent as `x-error-code`. Never changes once published.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PathNotFound { .. } => "not_found",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::OriginNotAllowed => "origin_not_allowed",
            Self::HostNotAllowed => "host_not_allowed",
            Self::Unauthenticated => "auth_required",
            Self::TokenExpired => "token_expired",
            Self::TokenInvalid(_) => "token_invalid",
            Self::TokenUnchecked => "auth_unavailable",
            Self::RoleMissing(_) => "role_missing",
            Self::NotYours => "not_yours",
            Self::LocalOnly => "local_only",
            Self::InvalidJson(_) => "json_invalid",
            Self::InvalidBody(_) => "body_invalid",
            Self::InvalidQuery { .. } => "query_invalid",
            Self::InvalidHeader { .. } => "header_invalid",
            Self::InvalidRequest(_) | Self::BodyBroken(_) => "request_invalid",
            Self::BodyTooSlow => "body_too_slow",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::UnsupportedMediaType(_) => "media_type_unsupported",
            Self::WorkflowNotFound(_) => "workflow_not_found",
            Self::InputInvalid(_) => "input_invalid",
            Self::ExecutionFailed(_) => "execution_failed",
            Self::ExecutionNotFound(_) => "execution_not_found",
            Self::ExecutionExists(_) => "execution_exists",
            Self::ExecutionAlready { .. } => "execution_not_running",
            Self::NotSuspended(_) => "not_suspended",
            Self::StepNotFound(_) => "step_not_found",
            Self::StepNotSuspended(_) => "step_not_suspended",
            Self::StepAmbiguous { .. } => "step_ambiguous",
            Self::ResumeDataInvalid(_) => "resume_data_invalid",
            Self::KeyReused => "idempotency_key_reused",
            Self::ToolNotFound(_) => "tool_not_found",
            Self::ToolInputInvalid(_) => "tool_input_invalid",
            Self::ToolFailed(_) => "tool_failed",
            Self::AgentRequired(_) => "agent_required",
            Self::NoMemory(_) => "memory_off",
            Self::ConversationNotFound => "conversation_not_found",
            Self::ConversationExists(_) => "conversation_exists",
            Self::AgentNotFound(_) => "agent_not_found",
            Self::SchemaInvalid(_) => "schema_invalid",
            Self::GenerationFailed { cause, .. } => cause.code(),
            Self::GenerationNotFound(_) => "generation_not_found",
            Self::GenerationAlready { .. } => "generation_not_running",
            Self::System(failure) => failure.code(),
            Self::Draining { .. } => "draining",
            Self::Busy => "busy",
            Self::StoreUnavailable => "store_unavailable",
            Self::Internal => "internal",
        }
    }

    /// Seconds for `Retry-After`, where waiting helps.
    pub fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::Busy | Self::StoreUnavailable | Self::TokenUnchecked => Some(RETRY_AFTER_BUSY_S),
            Self::Draining { .. } => Some(RETRY_AFTER_DRAINING_S),
            Self::PathNotFound { .. }
            | Self::MethodNotAllowed { .. }
            | Self::OriginNotAllowed
            | Self::HostNotAllowed
            | Self::Unauthenticated
            | Self::TokenExpired
            | Self::TokenInvalid(_)
            | Self::RoleMissing(_)
            | Self::NotYours
            | Self::LocalOnly
            | Self::InvalidJson(_)
            | Self::InvalidBody(_)
            | Self::InvalidQuery { .. }
            | Self::InvalidHeader { .. }
            | Self::InvalidRequest(_)
            | Self::BodyBroken(_)
            | Self::BodyTooSlow
            | Self::BodyTooLarge { .. }
            | Self::UnsupportedMediaType(_)
            | Self::WorkflowNotFound(_)
            | Self::InputInvalid(_)
            | Self::ExecutionFailed(_)
            | Self::ExecutionNotFound(_)
            | Self::ExecutionExists(_)
            | Self::ExecutionAlready { .. }
            | Self::NotSuspended(_)
            | Self::StepNotFound(_)
            | Self::StepNotSuspended(_)
            | Self::StepAmbiguous { .. }
            | Self::ResumeDataInvalid(_)
            | Self::KeyReused
            | Self::ToolNotFound(_)
            | Self::ToolInputInvalid(_)
            | Self::ToolFailed(_)
            | Self::AgentRequired(_)
            | Self::NoMemory(_)
            | Self::ConversationNotFound
            | Self::ConversationExists(_)
            | Self::AgentNotFound(_)
            | Self::SchemaInvalid(_)
            | Self::GenerationFailed { .. }
            | Self::GenerationNotFound(_)
            | Self::GenerationAlready { .. }
            | Self::System(_)
            | Self::Internal => None,
        }
    }

    /// The execution that the refusal is about, where it is known to exist.
    pub fn execution_id(&self) -> Option<&ExecutionId> {
        match self {
            Self::ExecutionFailed(id)
            | Self::ExecutionExists(id)
            | Self::NotSuspended(id)
            | Self::ExecutionAlready { id, .. } => Some(id),
            Self::Draining { execution } => execution.as_ref(),
            Self::PathNotFound { .. }
            | Self::MethodNotAllowed { .. }
            | Self::OriginNotAllowed
            | Self::HostNotAllowed
            | Self::Unauthenticated
            | Self::TokenExpired
            | Self::TokenInvalid(_)
            | Self::RoleMissing(_)
            | Self::NotYours
            | Self::LocalOnly
            | Self::InvalidJson(_)
            | Self::InvalidBody(_)
            | Self::InvalidQuery { .. }
            | Self::InvalidHeader { .. }
            | Self::InvalidRequest(_)
            | Self::BodyBroken(_)
            | Self::BodyTooSlow
            | Self::BodyTooLarge { .. }
            | Self::UnsupportedMediaType(_)
            | Self::WorkflowNotFound(_)
            | Self::InputInvalid(_)
            | Self::ExecutionNotFound(_)
            | Self::StepNotFound(_)
            | Self::StepNotSuspended(_)
            | Self::StepAmbiguous { .. }
            | Self::ResumeDataInvalid(_)
            | Self::KeyReused
            | Self::ToolNotFound(_)
            | Self::ToolInputInvalid(_)
            | Self::ToolFailed(_)
            | Self::AgentRequired(_)
            | Self::NoMemory(_)
            | Self::ConversationNotFound
            | Self::ConversationExists(_)
            | Self::AgentNotFound(_)
            | Self::SchemaInvalid(_)
            | Self::GenerationFailed { .. }
            | Self::GenerationNotFound(_)
            | Self::GenerationAlready { .. }
            | Self::System(_)
            | Self::TokenUnchecked
            | Self::Busy
            | Self::StoreUnavailable
            | Self::Internal => None,
        }
    }

    /// The generation that the refusal is about, where it is known to exist.
    pub fn generation_id(&self) -> Option<&str> {
        if let Self::GenerationFailed { id: Some(id), .. } = self {
            return Some(id);
        }
        if let Self::GenerationAlready { id, .. } = self { Some(id) } else { None }
    }

    /// The methods for `Allow`.
    pub fn allow(&self) -> Option<&str> {
        if let Self::MethodNotAllowed { allow, .. } = self { Some(allow) } else { None }
    }

    /// What to say in `WWW-Authenticate` (RFC 6750, section 3).
    pub fn challenge(&self) -> Option<&'static str> {
        match self.status() {
            401 if *self == Self::Unauthenticated => Some("Bearer"),
            401 => Some("Bearer error=\"invalid_token\""),
            403 if matches!(self, Self::RoleMissing(_)) => {
                Some("Bearer error=\"insufficient_scope\"")
            }
            _ => None,
        }
    }

    /// A wrong value at a path of the body.
    pub fn body(path: impl std::fmt::Display, what: impl std::fmt::Display) -> Self {
        Self::InvalidBody(format!("{path}: {what}"))
    }
}

fn generation_status(status: GenerationStatus) -> &'static str {
    match status {
        GenerationStatus::Working => "working",
        GenerationStatus::Completed => "completed",
        GenerationStatus::Error => "error",
        GenerationStatus::Cancelled => "cancelled",
    }
}

impl GenerationFailure {
    fn code(self) -> &'static str {
        match self {
            Self::Provider(ModelErrorKind::RateLimited) => "provider_rate_limited",
            Self::Provider(ModelErrorKind::Auth) => "provider_auth",
            Self::Provider(ModelErrorKind::Timeout) => "provider_timeout",
            Self::Provider(ModelErrorKind::Other | ModelErrorKind::Unavailable) => "provider_error",
            Self::Agent => "generation_failed",
            Self::Cancelled => "generation_cancelled",
        }
    }
}

#[cfg(test)]
mod tests;
