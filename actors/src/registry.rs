//! What this process can run: workflows, functions, agents, tools and models, by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::agent::AgentDefinition;
use crate::domain::plan::Plan;
use crate::function::StepFunction;
use crate::generation::tools::tools_of;
use crate::ports::model::LanguageModel;
use crate::tool::ToolDefinition;

/// Everything that executions refer to by name. Built once, then shared.
#[derive(Default, Clone)]
pub struct Registry {
    pub workflows: BTreeMap<String, Arc<Plan>>,
    pub functions: HashMap<String, StepFunction>,
    pub agents: BTreeMap<String, Arc<AgentDefinition>>,
    pub models: HashMap<String, Arc<dyn LanguageModel>>,
    pub tools: BTreeMap<String, Arc<ToolDefinition>>,
}

impl Registry {
    /// The tools that an agent has whatever the context of a run is: those of its list and, for
    /// one with sub-agents, `delegate_task`, as its model is told of them. The error names what
    /// is not registered.
    pub fn tools_of(&self, agent: &AgentDefinition) -> Result<Vec<Arc<ToolDefinition>>, String> {
        let names = agent.tools.fixed().map(Vec::as_slice).unwrap_or_default();
        tools_of(self, names, &agent.sub_agents)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("workflows", &self.workflows.keys())
            .field("functions", &self.functions.keys())
            .field("agents", &self.agents.keys())
            .field("models", &self.models.keys())
            .field("tools", &self.tools.keys())
            .finish()
    }
}
