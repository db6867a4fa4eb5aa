//! The mock model: built in, offline, deterministic.
//!
//! It answers by rules from the configuration. Without a matching rule it returns the prompt or,
//! given a schema, a sample that meets it. It is the default model, and the one of demonstrations
//! and tests.

mod rules;
mod words;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::domain::definition::Mapping;
use greenroom_actors::ports::model::{
    FinishReason, LanguageModel, ModelAnswer, ModelError, ModelEvent, ModelRequest,
};

use serde_json::Value;

use self::rules::{Decision, Rules, Script};
use self::words::{Pieces, usage};
use crate::Problems;

/// Configuration of a mock model.
///
/// ```
/// use greenroom::adapters::mock::{MockConfig, MockModel, MockRule};
/// use serde_json::json;
///
/// let rules = vec![
///     MockRule::reply("It is {{ tool_results[0].output }}.").when("tool_results"),
///     MockRule::call("weather", json!({ "city": "'Oslo'" })).when("'weather' in prompt"),
///     MockRule::reply("Ask me about the weather."),
/// ];
/// let model = MockModel::new(MockConfig { rules, ..MockConfig::default() });
/// assert!(model.is_ok());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MockConfig {
    /// Pause between streamed words.
    pub pace: Duration,
    /// Rules in order; the first whose condition holds decides.
    pub rules: Vec<MockRule>,
}

/// One rule of a mock model.
#[derive(Debug, Clone, PartialEq)]
pub struct MockRule {
    /// Condition over `prompt`, `messages`, `tools`, `schema`, `tool_results`; without it the rule
    /// always applies.
    pub when: Option<String>,
    /// Pause before the answer.
    pub delay: Duration,
    /// Answer of the rule.
    pub action: MockAction,
}

impl MockRule {
    /// Answers a text, a template: `{{ prompt }}`.
    pub fn reply(template: impl Into<String>) -> Self {
        Self::of(MockAction::Reply(template.into()))
    }

    /// Answers an object as JSON; its strings are expressions.
    pub fn object(members: Value) -> Self {
        Self::of(MockAction::Object(Mapping(members)))
    }

    /// Calls a tool; the strings of the arguments are expressions.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::of(MockAction::ToolCalls(vec![(tool.into(), Mapping(arguments))]))
    }

    /// Fails with this message.
    pub fn failure(message: impl Into<String>) -> Self {
        Self::of(MockAction::Error(message.into()))
    }

    /// Sets the condition: the rule applies if this expression is true.
    #[must_use]
    pub fn when(self, condition: impl Into<String>) -> Self {
        Self { when: Some(condition.into()), ..self }
    }

    /// Sets the pause before the answer.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    fn of(action: MockAction) -> Self {
        Self { when: None, delay: Duration::ZERO, action }
    }
}

/// Answer of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum MockAction {
    /// Template of the text; if the request has a schema, of JSON.
    Reply(String),
    /// Names of tools, each with expressions for its arguments.
    ToolCalls(Vec<(String, Mapping)>),
    /// Expressions of an object, answered as JSON.
    Object(Mapping),
    /// Failure with this message, before the first byte.
    Error(String),
    /// The answer without rules: for rules that only delay.
    Default,
}

/// A model that answers by rules. Clones share the compiled rules.
#[derive(Debug, Clone)]
pub struct MockModel {
    pace: Duration,
    rules: Arc<Rules>,
}

impl MockModel {
    /// Compiles the rules, or returns all their problems, each with its key.
    pub fn new(config: MockConfig) -> Result<Self, Problems> {
        let MockConfig { pace, rules } = config;
        let rules = Rules::compile(rules).map_err(Problems)?;
        Ok(Self { pace, rules: Arc::new(rules) })
    }

    /// Returns the answer, and true if it is JSON.
    async fn perform(&self, request: ModelRequest) -> Result<(ModelAnswer, bool), ModelError> {
        let Decision { delay, script } = self.rules.decide(&request);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let script = script?;
        let finish_reason = match script.tool_calls.is_empty() {
            true => FinishReason::Stop,
            false => FinishReason::ToolCalls,
        };
        let usage = usage(&request.messages, &script);
        let Script { text, is_json, tool_calls } = script;
        let answer =
            ModelAnswer { text, tool_calls, usage, finish_reason, ..ModelAnswer::default() };
        Ok((answer, is_json))
    }
}

impl LanguageModel for MockModel {
    fn name(&self) -> &str {
        "rehearsal"
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn generate(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let model = self.clone();
        async move { model.perform(request).await.map(|(answer, _)| answer) }.boxed()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let model = self.clone();
        let pace = self.pace;
        async move { model.perform(request).await }
            .map(move |performed| match performed {
                Ok((answer, is_json)) => paced(events(answer, is_json), pace),
                Err(error) => stream::iter([Err(error)]).boxed(),
            })
            .flatten_stream()
            .boxed()
    }
}

/// Returns the events of an answer, each made when it is asked for: a client that reads slowly costs
/// one text.
fn events(answer: ModelAnswer, is_json: bool) -> impl Iterator<Item = ModelEvent> + Send {
    let ModelAnswer { text, tool_calls, usage, finish_reason, .. } = answer;
    let deltas = Pieces::of(text, is_json).map(ModelEvent::TextDelta);
    let calls = tool_calls.into_iter().map(ModelEvent::ToolCall);
    deltas.chain(calls).chain([ModelEvent::Finished { usage, finish_reason, served: None }])
}

/// Pauses before every event but the first and the last.
fn paced(
    events: impl Iterator<Item = ModelEvent> + Send + 'static,
    pace: Duration,
) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    if pace.is_zero() {
        return stream::iter(events).map(Ok).boxed();
    }
    let pauses = move |(index, event): (usize, ModelEvent)| async move {
        if index > 0 && !matches!(event, ModelEvent::Finished { .. }) {
            tokio::time::sleep(pace).await;
        }
        Ok(event)
    };
    stream::iter(events).enumerate().then(pauses).boxed()
}

#[cfg(test)]
mod tests;
