//! Registry of what this process can run: workflows, functions, agents, tools and models, by name.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::agent::AgentDefinition;
use crate::agent::tool::ASK_USER;
use crate::agent::tool::ToolDefinition;
use crate::domain::expression::Closures;
use crate::domain::plan::Plan;
use crate::function::StepFunction;
use crate::ports::model::LanguageModel;

/// Items that executions refer to by name. Built once, shared, and replaced as a whole.
#[derive(Default, Clone)]
pub struct Registry {
    pub workflows: BTreeMap<String, Arc<Plan>>,
    pub functions: HashMap<String, StepFunction>,
    pub agents: BTreeMap<String, Arc<AgentDefinition>>,
    pub models: HashMap<String, Arc<dyn LanguageModel>>,
    pub tools: BTreeMap<String, Arc<ToolDefinition>>,
    /// Code in place of expressions, of workflows built in Rust.
    pub closures: Closures,
}

impl Registry {
    /// Returns the first missing item: the agent, its model or one of its tools, as far as they are
    /// fixed.
    pub(crate) fn missing_for_agent(&self, id: &str) -> Option<Missing> {
        let Some(agent) = self.agents.get(id) else { return Some(Missing::Agent(id.into())) };
        if let Some(model) = agent.model.fixed()
            && !self.models.contains_key(model)
        {
            return Some(Missing::Model(Arc::from(model.as_str())));
        }
        let mut tools = agent.tools.fixed()?.iter();
        let missing = tools.find(|tool| *tool != ASK_USER && !self.tools.contains_key(*tool))?;
        Some(Missing::Tool(Arc::from(missing.as_str())))
    }

    /// Returns true if the item is registered.
    pub(crate) fn has(&self, missing: &Missing) -> bool {
        match missing {
            Missing::Agent(name) => self.agents.contains_key(&**name),
            Missing::Function(name) => self.functions.contains_key(&**name),
            Missing::Model(name) => self.models.contains_key(&**name),
            Missing::Tool(name) => self.tools.contains_key(&**name),
            Missing::Workflow(name) => self.workflows.contains_key(&**name),
        }
    }
}

/// An item that an execution refers to and that is not registered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Missing {
    Agent(Arc<str>),
    Function(Arc<str>),
    Model(Arc<str>),
    Tool(Arc<str>),
    Workflow(Arc<str>),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(name) => write!(f, "agent {name}"),
            Self::Function(name) => write!(f, "function {name}"),
            Self::Model(name) => write!(f, "model {name}"),
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Workflow(name) => write!(f, "workflow {name}"),
        }?;
        f.write_str(" is not registered")
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("workflows", &self.workflows.keys())
            .field("functions", &self.functions.keys())
            .field("agents", &self.agents.keys())
            .field("models", &self.models.keys())
            .field("tools", &self.tools.keys())
            .finish()
    }
}
