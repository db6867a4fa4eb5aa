//! Agents as they are configured.

use crate::ports::model::ModelOptions;

/// An agent: instructions, a model and limits.
#[derive(Debug, Clone)]
pub struct AgentDefinition {
    pub id: String,
    pub name: String,
    pub description: String,
    /// Template; in scope: `context`, `user`.
    pub instructions: Option<String>,
    /// Id of a registered model.
    pub model: String,
    /// Whether conversations are kept.
    pub memory: bool,
    pub max_steps: Option<u32>,
    /// Options of every call, below the caller's own.
    pub options: ModelOptions,
}
