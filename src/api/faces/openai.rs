//! Agents and workflows as models of OpenAI's Chat Completions API
//! (<https://platform.openai.com/docs/api-reference/chat>).

mod agent;
mod workflow;

use std::sync::Arc;

use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::registry::Registry;

use crate::api::error::{ApiError, UnknownName};
use crate::api::ids::wrong_with;
use crate::faces::OpenAiFace;

pub use agent::{check_key, read_generation, stream_of};
pub use workflow::{WorkflowAnswer, answer_of, read_start};

/// Begin of the names of workflows.
const WORKFLOW: &str = "workflow/";
/// Header with the conversation that an agent remembers.
pub const CONVERSATION: &str = "x-conversation-id";

/// An agent or a workflow that is a model.
#[derive(Debug, Clone)]
pub enum Model {
    Agent(Arc<AgentDefinition>),
    Workflow(Arc<Plan>),
}

impl Model {
    /// Returns the name for clients.
    pub fn name(&self) -> String {
        match self {
            Self::Agent(agent) => agent.id.clone(),
            Self::Workflow(plan) => format!("{WORKFLOW}{}", plan.definition.id),
        }
    }
}

impl OpenAiFace {
    /// Returns all models: agents, then workflows, each by id.
    pub fn models(&self, registry: &Registry) -> Vec<Model> {
        let agents = registry.agents.values().filter(|it| self.agents.has(&it.id));
        let workflows = registry.workflows.iter().filter(|(id, _)| self.workflows.has(id));
        let workflows = workflows.map(|(_, plan)| Model::Workflow(Arc::clone(plan)));
        agents.map(|agent| Model::Agent(Arc::clone(agent))).chain(workflows).collect()
    }

    /// Finds a model by its name.
    pub fn find(&self, registry: &Registry, name: &str) -> Result<Model, ApiError> {
        let found = match name.strip_prefix(WORKFLOW) {
            Some(id) if self.workflows.has(id) => {
                registry.workflows.get(id).map(|plan| Model::Workflow(Arc::clone(plan)))
            }
            None if self.agents.has(name) => {
                registry.agents.get(name).map(|agent| Model::Agent(Arc::clone(agent)))
            }
            Some(_) | None => None,
        };
        found.ok_or_else(|| {
            let names: Vec<_> = self.models(registry).iter().map(Model::name).collect();
            ApiError::ModelNotFound(UnknownName::among(name, names.iter().map(String::as_str)))
        })
    }
}

/// Checks the conversation of a request.
pub fn conversation_of(header: Option<&str>) -> Result<Option<String>, ApiError> {
    match header.map(|id| (id, wrong_with(id))) {
        Some((_, Some(what))) => Err(ApiError::InvalidHeader { name: "X-Conversation-Id", what }),
        Some((id, None)) => Ok(Some(id.to_owned())),
        None => Ok(None),
    }
}
