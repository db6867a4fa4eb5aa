//! Language models of a program, for [`Greenroom::model`](crate::Greenroom::model).
//!
//! [`LanguageModel`] is what a model implements. [`ScriptedModel`] gives prepared answers in tests,
//! and [`crate::adapters::mock`] has the model that needs no network.

pub use futures_util::future::BoxFuture;
pub use futures_util::stream::BoxStream;
pub use greenroom_actors::ports::model::scripted::ScriptedModel;
pub use greenroom_actors::ports::model::{
    FinishReason, LanguageModel, Message, ModelAnswer, ModelError, ModelErrorKind, ModelEvent,
    ModelOptions, ModelRequest, Part, ProviderState, Role, Served, ToolCall, ToolSpec, Usage,
};
