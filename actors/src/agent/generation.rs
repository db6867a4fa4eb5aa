//! One generation of an agent: an actor of its own, from the prompt to the recorded answer.
//!
//! The rules are free of actors: what to ask and what to make of an answer (`turn`), what to take
//! from a conversation and to leave in it (`memory`), in which order to speak (`speech`). A `run`
//! is one future that asks the model and its tools, records and answers, in the order that output
//! commit demands; the actor lets it work and hears what others want of it meanwhile.

mod active;
pub(crate) mod actor;
mod compiled;
mod control;
mod generation_registry;
mod handle;
mod memory;
mod object;
mod options;
mod readers;
mod run;
mod sequencer;
pub(crate) mod tools;
mod turn;

use serde_json::Value;

use crate::agent::AgentDefinition;
use crate::domain::message::Message;
use crate::domain::nesting::{check_depth, check_members_depth};
use crate::domain::trace::TraceOrigin;
use crate::ports::model::ModelOptions;
use crate::ports::store::StepOrigin;

pub use crate::agent::event::{
    FailureKind, GenerationEvent, GenerationProgress, GenerationSubscriber,
};
pub use crate::agent::outcome::{GenerateError, Generation};
pub(crate) use compiled::CompiledAgents;

pub use active::{ActiveGenerations, ActiveGuard};
pub use generation_registry::GenerationRegistry;
pub use handle::{GenerationDeps, GenerationHandle, PauseHandle, spawn_generation};
pub use options::effective_options;

/// How the ids of generations of workflows' steps begin. No caller may choose one of these.
pub const STEP_GENERATION_PREFIX: &str = "step-";

/// Asks an agent for a text, or for an object with a schema.
#[derive(Debug, Clone, Default)]
pub struct GenerationRequest {
    pub agent_id: String,
    /// The caller's messages, in order; a text input is one user message.
    pub messages: Vec<Message>,
    /// Whether `messages` are the caller's view of the whole conversation (a chat client's), not
    /// only what is new: messages that the conversation has are then not loaded or stored twice,
    /// and what the caller has dropped at the end is forgotten.
    pub is_whole: bool,
    /// The caller's input as it came, for the history.
    pub input: Value,
    pub options: ModelOptions,
    /// JSON Schema that the answer must meet.
    pub schema: Option<Value>,
    /// Times that the model is asked again for an object; none: as configured.
    pub object_repairs: Option<u32>,
    /// Turns at most.
    pub max_steps: Option<u32>,
    /// Messages of the conversation that the model sees, at most 1000; none: 10.
    pub context_limit: Option<u32>,
    pub user_id: Option<String>,
    pub conversation_id: Option<String>,
    /// The caller's context object, `user` included when a token named one.
    pub context: serde_json::Map<String, Value>,
    /// Whether a chat client asks. The run is then to be found by its conversation while it lasts,
    /// for readers that come back; and a question that the conversation has is asked again: what
    /// was said after it is forgotten.
    pub is_chat: bool,
    pub trace: TraceOrigin,
    /// The step of a workflow that asks.
    pub origin: Option<StepOrigin>,
    /// The id that the caller chose for the run; refused where there is one of that id already.
    pub chosen_id: Option<String>,
    /// When a reader of the run is told that it has begun.
    pub begins: Begins,
    /// Agents and workflows above this one.
    pub depth: u32,
}

/// When a run has begun, for who waits to read it. What fails before that is told to the one who
/// asked, what fails after it to the readers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begins {
    /// With the first word of the model.
    #[default]
    WithFirstWord,
    /// As soon as the history has it. A cancel is then always told to the readers.
    OnceRecorded,
}

impl GenerationRequest {
    /// Whether anything in it nests deeper than so many levels: where, and what is wrong there.
    fn check_depth(&self, depth_max: usize) -> Result<(), String> {
        let values = [
            ("input", Some(&self.input)),
            ("options.providerOptions", self.options.provider_options.as_ref()),
            ("schema", self.schema.as_ref()),
        ];
        for (place, value) in values {
            let checked = value.map_or(Ok(()), |value| check_depth(value, depth_max));
            checked.map_err(|too_deep| format!("{place}: {too_deep}"))?;
        }
        check_members_depth(&self.context, depth_max)
            .map_err(|too_deep| format!("options.context: {too_deep}"))
    }

    /// Whether the run goes on without its reader, to be found again by its conversation.
    pub(crate) fn is_resumable_chat(&self, agent: &AgentDefinition) -> bool {
        self.is_chat && agent.is_resumable && self.conversation_id.is_some()
    }
}

#[cfg(test)]
mod tests;
