//! Agents as they are configured.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::{Map, Value};

use crate::agent::outcome::{GenerateError, Generation};
use crate::domain::message::{ToolCall, ToolResult};
use crate::ports::model::ModelOptions;

/// An agent: instructions, a model, tools and limits.
#[derive(Debug, Clone, Default)]
pub struct AgentDefinition {
    pub id: String,
    pub name: String,
    pub description: String,
    /// A fixed text is used verbatim; a source is a template over `context` and `user`.
    pub instructions: Option<Choice<String>>,
    /// Id of a registered model; as a source, a template.
    pub model: Choice<String>,
    /// Names of registered tools; as a source, an expression that gives an array of names.
    pub tools: Choice<Vec<String>>,
    /// Ids of agents that this one can delegate to, with the tool `delegate_task`.
    pub sub_agents: Vec<String>,
    /// True if conversations are stored and read back.
    pub memory: bool,
    /// Default for the number of turns of a run; the caller may override it.
    pub max_steps: Option<u32>,
    pub budget: Budget,
    /// Options of every call, below the caller's own.
    pub options: ModelOptions,
    /// True if a chat continues after its subscriber disconnects, to be picked up later.
    pub is_resumable: bool,
    /// True if a crash ends runs instead of interrupting them. Runs that wait for people survive
    /// it nevertheless.
    pub is_volatile: bool,
    /// True if chats get requests of approvals as data parts, for clients that know no others.
    pub has_data_approvals: bool,
    pub hooks: Option<Hooks>,
}

impl AgentDefinition {
    /// Returns true if the agent has tools or sub-agents, or may have them.
    pub fn has_tools(&self) -> bool {
        !self.sub_agents.is_empty() || self.tools.fixed().is_none_or(|names| !names.is_empty())
    }
}

/// Limits of one run; `None` leaves the server's limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    /// Tokens of all turns, sub-agents included. Once they are exceeded no turn begins, and the run
    /// ends with the answer so far.
    pub tokens: Option<u64>,
    /// The run fails when it takes longer. Time spent paused does not count.
    pub time: Option<Duration>,
    /// Further calls are refused, and the model gets the refusal as their result.
    pub tool_calls: Option<u32>,
}

/// A value that is fixed, or computed from the context of a run.
#[derive(Clone)]
pub enum Choice<T> {
    Fixed(T),
    /// A template or an expression over `context` and `user`.
    Source(String),
    /// Rust code; its error fails the run.
    Function(ChoiceFunction<T>),
}

/// Computes a value from the context of a run.
pub type ChoiceFunction<T> = Arc<dyn Fn(&Map<String, Value>) -> Result<T, String> + Send + Sync>;

impl<T> Choice<T> {
    /// Returns the value if it is fixed, for descriptions of the agent.
    pub fn fixed(&self) -> Option<&T> {
        match self {
            Self::Fixed(value) => Some(value),
            Self::Source(_) | Self::Function(_) => None,
        }
    }
}

impl<T: Default> Default for Choice<T> {
    fn default() -> Self {
        Self::Fixed(T::default())
    }
}

impl From<&str> for Choice<String> {
    fn from(text: &str) -> Self {
        Self::Fixed(text.to_owned())
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Choice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(value) => f.debug_tuple("Fixed").field(value).finish(),
            Self::Source(source) => f.debug_tuple("Source").field(source).finish(),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}

/// The run that calls a hook.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunInfo {
    pub generation_id: Arc<str>,
    pub agent_id: Arc<str>,
    pub user_id: Option<Arc<str>>,
    pub conversation_id: Option<Arc<str>>,
    pub context: Arc<Map<String, Value>>,
}

/// Rust code called along the runs of an agent, and awaited in order. A panic or an error of
/// `on_start` fails the run, one of `on_tool_start` refuses the call with that message, the others
/// are logged. Hooks count against the time of the run. `on_end` is called for every run for which
/// `on_start` was called, before its end is recorded; after a stop it may take one second.
/// `on_tool_end` is not called for a call that waits for people: with their answer it is made again, from
/// `on_tool_start` on.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt, ready};
/// use greenroom_actors::agent::{AgentHooks, RunInfo};
///
/// /// Refuses anonymous callers.
/// struct SignedIn;
///
/// impl AgentHooks for SignedIn {
///     fn on_start<'a>(&'a self, run: &'a RunInfo) -> BoxFuture<'a, Result<(), String>> {
///         ready(run.user_id.as_ref().map(drop).ok_or("sign in first".to_owned())).boxed()
///     }
/// }
/// ```
pub trait AgentHooks: Send + Sync {
    fn on_start<'a>(&'a self, _: &'a RunInfo) -> BoxFuture<'a, Result<(), String>> {
        ready(Ok(())).boxed()
    }

    fn on_tool_start<'a>(
        &'a self,
        _: &'a RunInfo,
        _: &'a ToolCall,
    ) -> BoxFuture<'a, Result<(), String>> {
        ready(Ok(())).boxed()
    }

    fn on_tool_end<'a>(&'a self, _: &'a RunInfo, _: &'a ToolResult) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }

    fn on_end<'a>(
        &'a self,
        _: &'a RunInfo,
        _: &'a Result<Generation, GenerateError>,
    ) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }
}

/// Shared hooks.
#[derive(Clone)]
pub struct Hooks(pub Arc<dyn AgentHooks>);

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooks")
    }
}
