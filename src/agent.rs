//! Agents: definitions, hooks along their runs, and what they generate. [`builder::Agent`] makes a
//! definition.
//!
//! [`builder::Agent`]: crate::builder::Agent

pub use futures_util::future::BoxFuture;
pub use greenroom_actors::agent::generation::{
    GenerateError, Generation, GenerationEvent, GenerationRequest,
};
pub use greenroom_actors::agent::{
    AgentDefinition, AgentHooks, Budget, Choice, ChoiceFunction, FailureKind, Hooks, PendingAsk,
    RunInfo,
};
pub use greenroom_actors::domain::message::{
    Message, Part, Role, ToolCall, ToolOutcome, ToolResult,
};
pub use greenroom_actors::domain::usage::Usage;
