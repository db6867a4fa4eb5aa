//! What this process can run: workflows, functions, agents, tools and models, by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::agent::AgentDefinition;
use crate::domain::plan::Plan;
use crate::function::StepFunction;
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
