//! Agents: their definitions and tools, and the generations that run them.

mod ask;
mod definition;
pub mod event;
pub mod generation;
mod outcome;
pub mod tool;

pub use ask::{Approval, CallApproval, InvalidApproval, OnCrash, OnTimeout, Remember, ToolAsk};
pub use definition::{AgentDefinition, AgentHooks, Budget, Choice, ChoiceFunction, Hooks, RunInfo};
pub use outcome::{FailureKind, GenerateError, Generation, PendingAsk};
