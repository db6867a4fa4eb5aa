//! Port to language models.

mod collected;
pub mod scripted;
mod served;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::BoxStream;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use crate::domain::message::{Message, Part, Role, ToolCall};
use crate::domain::trace::Trace;
pub use crate::domain::usage::Usage;
pub use served::Served;

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// Options of a call, in the wire names of the specification; `None`: unset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelOptions {
    pub temperature: Option<f64>,
    pub max_output_tokens: Option<u64>,
    pub top_p: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    /// Stored ones of earlier versions may be larger, and count as unset.
    #[serde(deserialize_with = "seed_of")]
    pub seed: Option<i64>,
    pub stop_sequences: Option<Vec<String>>,
    /// `false`: at most one call of a tool per answer, of providers that know this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    pub provider_options: Option<Value>,
}

fn seed_of<'de, D: Deserializer<'de>>(source: D) -> Result<Option<i64>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(source)?;
    Ok(number.and_then(|number| number.as_i64()))
}

/// Choice of tools for one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides whether it calls tools.
    #[default]
    Auto,
    /// The model has to call at least one of them.
    Required,
    /// The model has to call this one.
    Tool(Arc<str>),
}

impl ToolChoice {
    /// Returns true if an answer with these calls is allowed.
    pub fn is_met_by(&self, calls: &[ToolCall]) -> bool {
        match self {
            Self::Auto => true,
            Self::Required => !calls.is_empty(),
            Self::Tool(name) => calls.iter().any(|call| call.tool_name == **name),
        }
    }
}

/// A complete prompt.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// Result of [`crate::domain::message::for_model`]. Shared: a turn appends once the model has
    /// dropped the last request.
    pub messages: Arc<Vec<Message>>,
    pub tools: Arc<[ToolSpec]>,
    pub tool_choice: ToolChoice,
    /// JSON Schema that the answer must meet.
    pub schema: Option<Arc<Value>>,
    pub options: ModelOptions,
    /// Trace of the call, below the call's own span; sent to providers.
    pub trace: Option<Trace>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    #[default]
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    Error,
    Other,
}

/// A complete answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelAnswer {
    pub text: String,
    pub reasoning: String,
    pub tool_calls: Vec<ToolCall>,
    pub usage: Usage,
    pub finish_reason: FinishReason,
    /// State to send back to the provider in the next turn of this run.
    pub provider_state: Option<ProviderState>,
    /// The model that answered; `None`: the requested one.
    pub served: Option<Box<Served>>,
}

/// A provider's own data about an answer; see [`Part::ProviderState`].
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderState {
    /// Name of the provider that understands it.
    pub provider: String,
    pub state: Value,
}

/// A piece of an answer. A stream ends with `Finished` or with an error.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    TextDelta(String),
    ReasoningDelta(String),
    /// Start of a call's arguments. Optional: a model may give calls whole.
    ToolInputStart {
        tool_call_id: String,
        tool_name: String,
    },
    /// Next piece of a call's arguments, as JSON text.
    ToolInputDelta {
        tool_call_id: String,
        delta: String,
    },
    /// A complete call. Its id is unique in the run.
    ToolCall(ToolCall),
    ProviderState(ProviderState),
    Finished {
        usage: Usage,
        finish_reason: FinishReason,
        /// As in [`ModelAnswer`].
        served: Option<Box<Served>>,
    },
}

/// Failure of a model. The message is safe for callers: no secret, no stack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    pub message: String,
    /// Delay that the provider requests before another attempt.
    pub retry_after: Option<Duration>,
}

impl ModelError {
    /// Creates an error without `retry_after`.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// Creates the error of an answer without an end.
    pub(crate) fn incomplete() -> Self {
        Self::new(ModelErrorKind::Unavailable, "the model's answer ended early")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelErrorKind {
    RateLimited,
    Auth,
    Timeout,
    /// The provider could not be reached or failed (5xx, a broken connection): worth a retry.
    Unavailable,
    /// The provider refused the request, or its response is unreadable: a retry would not help.
    Other,
}

/// A model behind some provider. Dropping a future or stream ends the upstream request.
///
/// ```
/// use futures_util::stream::{self, BoxStream, StreamExt};
/// use greenroom_actors::ports::model::{
///     FinishReason, LanguageModel, ModelError, ModelEvent, ModelRequest, Usage,
/// };
///
/// /// Always gives the same answer.
/// struct Parrot;
///
/// impl LanguageModel for Parrot {
///     fn name(&self) -> &str {
///         "parrot"
///     }
///
///     fn is_remote(&self) -> bool {
///         false
///     }
///
///     fn stream(
///         &self,
///         _: ModelRequest,
///     ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
///         let end = ModelEvent::Finished {
///             usage: Usage::default(),
///             finish_reason: FinishReason::Stop,
///             served: None,
///         };
///         stream::iter([Ok(ModelEvent::TextDelta("Polly!".to_owned())), Ok(end)]).boxed()
///     }
/// }
/// ```
pub trait LanguageModel: Send + Sync {
    /// Returns the name shown to callers, e.g. `rehearsal`.
    fn name(&self) -> &str;

    /// Returns true if calls leave the process; facts before a call must then be durable.
    fn is_remote(&self) -> bool;

    /// Returns true if it reads results of tools that are lists of parts ([`Content`]). Other models get
    /// their texts, with descriptions of pictures, sounds and files.
    ///
    /// [`Content`]: crate::agent::tool::Content
    fn reads_content(&self) -> bool {
        false
    }

    /// Returns the model that will answer, as far as known in advance.
    fn expected(&self) -> Served {
        Served::of(self.name())
    }

    /// Returns a whole answer, by default the one that [`Self::stream`] gives in pieces.
    fn generate(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        ModelAnswer::collect(self.stream(request)).boxed()
    }

    /// Returns an answer in pieces. The last one is [`ModelEvent::Finished`]: a stream that ends
    /// without it, or without an error, counts as an answer that broke off.
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>>;
}
