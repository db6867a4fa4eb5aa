//! One generation of an agent: an actor, from the prompt to the recorded answer.
//!
//! The rules are plain code: what to ask and how to proceed after an answer (`turn`), what to read
//! from and write to a conversation (`memory`), the order of events (`sequencer`). A `run` is one
//! future that asks the model, calls tools, records and answers, each after the record that must
//! precede it. The actor drives that future and receives cancel, pause and subscribe.

mod active;
pub(crate) mod actor;
mod compiled;
pub(crate) mod continuable;
pub(crate) mod continuation;
mod control;
mod generation_registry;
mod handle;
pub(crate) mod idle_end;
pub(crate) mod left_behind;
mod memory;
mod object;
mod options;
mod recording;
mod run;
mod sequencer;
mod subscribers;
pub(crate) mod tools;
mod turn;
pub(crate) mod waiting_chats;

use std::sync::Arc;

use serde_json::Value;

use crate::agent::AgentDefinition;
use crate::domain::message::Message;
use crate::domain::nesting::{check_depth, check_members_depth};
use crate::domain::trace::TraceOrigin;
use crate::ports::model::{ModelOptions, ToolChoice, ToolSpec};
use crate::ports::store::StepOrigin;

pub use crate::agent::event::{GenerationEvent, GenerationProgress, GenerationSubscriber};
pub use crate::agent::outcome::{FailureKind, GenerateError, Generation};
pub(crate) use compiled::CompiledAgents;

pub use active::{ActiveGenerations, ActiveGuard};
pub use generation_registry::GenerationRegistry;
pub use handle::{GenerationDeps, GenerationHandle, PauseHandle, spawn_generation};
pub use options::effective_options;

/// Asks an agent for a text, or for an object with a schema.
#[derive(Debug, Clone, Default)]
pub struct GenerationRequest {
    pub agent_id: String,
    /// The caller's messages, in order; a text input is one user message.
    pub messages: Vec<Message>,
    /// True if `messages` are the whole conversation as a chat client sees it, not only what is
    /// new. Messages that are stored already are then neither loaded nor stored twice, and those
    /// that the client dropped at the end are deleted.
    pub is_whole: bool,
    /// The caller's input, verbatim, for the history.
    pub input: Value,
    pub options: ModelOptions,
    /// JSON Schema that the answer must meet.
    pub schema: Option<Value>,
    /// Tools that the caller has itself. A turn that calls one of them is the last, and its calls of
    /// them have no results. An agent's own tool of such a name is a mistake of the caller.
    pub client_tools: Arc<[ToolSpec]>,
    /// Choice of tools for the first answer; the model decides in later turns.
    pub tool_choice: ToolChoice,
    /// Repairs of an object that misses its schema; `None`: as configured.
    pub object_repairs: Option<u32>,
    /// Maximum number of turns.
    pub max_steps: Option<u32>,
    /// Stored messages given to the model, at most 1000; `None`: 10.
    pub context_limit: Option<u32>,
    pub user_id: Option<String>,
    pub conversation_id: Option<String>,
    /// The caller's context object, `user` included when a token named one.
    pub context: serde_json::Map<String, Value>,
    /// True if a chat client asks. Subscribers that reconnect then find the run by its
    /// conversation; a question that is already stored is asked again, and the answers after it are
    /// deleted.
    pub is_chat: bool,
    /// True if a chat continues without its client; `None`: as its agent says.
    pub is_resumable: Option<bool>,
    pub trace: TraceOrigin,
    /// The workflow step that asks.
    pub origin: Option<StepOrigin>,
    /// Id chosen by the caller; refused if a generation of that id exists.
    pub chosen_id: Option<String>,
    /// The moment at which [`GenerationHandle::begun`] resolves.
    pub begins: Begins,
    /// Agents and workflows above this one.
    pub depth: u32,
    /// True if a generation of this id may be interrupted or suspended: it is then continued, and
    /// the rest of the request is ignored.
    pub continues: bool,
    /// The generation whose tool asks.
    pub parent: Option<Arc<str>>,
}

/// The moment at which a run counts as begun. A failure before it is returned to the caller, a
/// later one is sent to subscribers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begins {
    /// At the first output of the model.
    #[default]
    WithFirstWord,
    /// Once the history has it. A cancel is then always sent to subscribers.
    OnceRecorded,
}

impl GenerationRequest {
    /// Rejects values nested deeper than `depth_max`; the error names the place.
    fn check_depth(&self, depth_max: usize) -> Result<(), GenerateError> {
        let refuse =
            |place: &str, too_deep| GenerateError::InvalidRequest(format!("{place}: {too_deep}"));
        let values = [
            ("input", Some(&self.input)),
            ("options.providerOptions", self.options.provider_options.as_ref()),
            ("schema", self.schema.as_ref()),
        ];
        for (place, value) in values {
            let checked = value.map_or(Ok(()), |value| check_depth(value, depth_max));
            checked.map_err(|too_deep| refuse(place, too_deep))?;
        }
        for (index, tool) in self.client_tools.iter().enumerate() {
            let checked = check_depth(&tool.parameters, depth_max);
            checked.map_err(|too_deep| refuse(&format!("tools[{index}]"), too_deep))?;
        }
        check_members_depth(&self.context, depth_max)
            .map_err(|too_deep| refuse("options.context", too_deep))
    }

    /// Returns true if the run survives its subscriber and can be found by its conversation.
    pub(crate) fn is_resumable_chat(&self, agent: &AgentDefinition) -> bool {
        let is_resumable = self.is_resumable.unwrap_or(agent.is_resumable);
        self.is_chat && is_resumable && self.conversation_id.is_some()
    }
}

#[cfg(test)]
mod tests;
