//! How an execution begins: by itself, below a parent, or as the replay of another one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ExecutionId, StepPath};
use crate::principal::Principal;
use crate::state::node::Node;
use crate::stored::present;
use crate::trace::Trace;

/// Says how an execution came to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub workflow_id: Arc<str>,
    pub definition_hash: Arc<str>,
    pub input: Arc<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Arc<str>>,
    /// The operation context: the caller's object plus `user`, `userId`, `conversationId`.
    pub context: Arc<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Executions above this one.
    #[serde(default)]
    pub depth: u32,
    pub trace: Trace,
    /// Given when it begins in the middle of another execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Box<Replayed>>,
}

/// Says what an execution takes over from the one that it replays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    pub execution: ExecutionId,
    /// The top-level step that it begins with.
    pub step_id: Arc<str>,
    /// The nodes of the steps before it, settled. Empty in a state, which has them in its tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Answers the question of the step before it is asked; `null` is an answer too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer: Option<Arc<Value>>,
    /// The principal that asked for the replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

/// The andWorkflow step that an execution belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub execution: ExecutionId,
    pub path: StepPath,
}
