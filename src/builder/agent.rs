//! Agents built in Rust.

use std::sync::Arc;

use greenroom_actors::agent::{AgentDefinition, AgentHooks, Budget, Choice, Hooks};
use greenroom_actors::ports::model::ModelOptions;
use serde_json::{Map, Value};

/// Builder of an agent, for [`crate::Greenroom::agent`].
///
/// ```
/// use greenroom::builder::Agent;
/// use greenroom_actors::agent::AgentDefinition;
///
/// let desk: AgentDefinition = Agent::new("desk")
///     .description("Answers customers")
///     .instructions("You help {{ user.name | default('a guest') }}.")
///     .model("offline")
///     // staff may do more than customers
///     .tools_with(|context| match context.get("role").and_then(|role| role.as_str()) {
///         Some("staff") => Ok(vec!["order_status".to_owned(), "refund".to_owned()]),
///         _ => Ok(vec!["order_status".to_owned()]),
///     })
///     .sub_agents(["researcher"])
///     .max_steps(5)
///     .into();
/// assert_eq!(desk.name, "desk");
/// ```
#[derive(Debug, Clone)]
pub struct Agent {
    definition: AgentDefinition,
}

impl From<Agent> for AgentDefinition {
    fn from(agent: Agent) -> Self {
        agent.definition
    }
}

impl Agent {
    /// Creates an agent that is named like its id and stores conversations. It needs a model.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        let name = id.clone();
        Self { definition: AgentDefinition { id, name, memory: true, ..Default::default() } }
    }

    /// Sets the name for people.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.definition.name = name.into();
        self
    }

    /// Sets the purpose. Agents that can delegate work to it read this.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = description.into();
        self
    }

    /// Sets the system prompt: a template over `context` and `user`.
    pub fn instructions(mut self, template: impl Into<String>) -> Self {
        self.definition.instructions = Some(Choice::Source(template.into()));
        self
    }

    /// Sets a function that returns the system prompt for the caller's context. An error fails the
    /// generation.
    pub fn instructions_with(
        mut self,
        choose: impl Fn(&Map<String, Value>) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        self.definition.instructions = Some(Choice::Function(Arc::new(choose)));
        self
    }

    /// Sets the model by name.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.definition.model = Choice::Fixed(name.into());
        self
    }

    /// Sets a function that returns the name of the model for the caller's context. An error fails
    /// the generation.
    pub fn model_with(
        mut self,
        choose: impl Fn(&Map<String, Value>) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        self.definition.model = Choice::Function(Arc::new(choose));
        self
    }

    /// Sets the names of the tools that it may call.
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.definition.tools = Choice::Fixed(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets a function that returns the names of tools for the caller's context. An error fails the
    /// generation.
    pub fn tools_with(
        mut self,
        choose: impl Fn(&Map<String, Value>) -> Result<Vec<String>, String> + Send + Sync + 'static,
    ) -> Self {
        self.definition.tools = Choice::Function(Arc::new(choose));
        self
    }

    /// Sets the ids of agents to which it can delegate work, with the tool `delegate_task`.
    pub fn sub_agents<T: Into<String>>(mut self, ids: impl IntoIterator<Item = T>) -> Self {
        self.definition.sub_agents = ids.into_iter().map(Into::into).collect();
        self
    }

    /// Stores no conversations.
    pub fn without_memory(mut self) -> Self {
        self.definition.memory = false;
        self
    }

    /// Sets the maximum number of turns, for callers that do not set one.
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.definition.max_steps = Some(steps);
        self
    }

    /// Sets the limits of one generation.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.definition.budget = budget;
        self
    }

    /// Sets options of the model, which callers can override.
    pub fn options(mut self, options: ModelOptions) -> Self {
        self.definition.options = options;
        self
    }

    /// Continues a chat after its client has disconnected, so that it can be resumed.
    pub fn resumable(mut self) -> Self {
        self.definition.is_resumable = true;
        self
    }

    /// Sends requests of approvals to chats as data parts, for clients of the AI SDK 5, which fail
    /// at others.
    pub fn data_approvals(mut self) -> Self {
        self.definition.has_data_approvals = true;
        self
    }

    /// Sets hooks that observe its generations.
    pub fn hooks(mut self, hooks: impl AgentHooks + 'static) -> Self {
        self.definition.hooks = Some(Hooks(Arc::new(hooks)));
        self
    }
}
