//! The rehearsal model: built in, offline, deterministic.
//!
//! It answers by rules from the configuration; without a matching rule it says the prompt back,
//! or, given a schema, gives a sample object that meets it. It is the default, the demonstration
//! and the test double of agents, and understands nothing.

mod rules;
mod words;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::domain::definition::Projection;
use greenroom_actors::ports::model::{
    FinishReason, LanguageModel, ModelAnswer, ModelError, ModelEvent, ModelRequest,
};

use self::rules::{Line, Rules, Said};
use self::words::{pieces, usage};

/// The configuration of a rehearsal model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RehearsalConfig {
    /// Pause between streamed words.
    pub pace: Duration,
    /// The first rule that holds answers.
    pub rules: Vec<RehearsalRule>,
}

/// One rule of a rehearsal model.
#[derive(Debug, Clone, PartialEq)]
pub struct RehearsalRule {
    /// Expression over `prompt`, `messages`, `tools`, `schema`, `tool_results`; without it the
    /// rule always holds.
    pub when: Option<String>,
    /// Pause before anything is said.
    pub delay: Duration,
    /// What is said.
    pub action: RehearsalAction,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq)]
pub enum RehearsalAction {
    /// A template: the text, and with a schema the model's JSON.
    Reply(String),
    /// Names of tools, each with its arguments.
    ToolCalls(Vec<(String, Projection)>),
    /// An object, said as JSON.
    Object(Projection),
    /// A failure with this message, before the first byte.
    Error(String),
    /// What would be said without rules: for rules that only delay.
    Default,
}

/// The model. Clones share the compiled rules.
#[derive(Debug, Clone)]
pub struct RehearsalModel {
    pace: Duration,
    rules: Arc<Rules>,
}

impl RehearsalModel {
    /// Compiles the rules; returns every problem found, each with the key it is about.
    pub fn new(config: RehearsalConfig) -> Result<Self, Vec<String>> {
        let RehearsalConfig { pace, rules } = config;
        Ok(Self { pace, rules: Arc::new(Rules::compile(rules)?) })
    }

    /// The answer, and whether it is JSON.
    async fn perform(&self, request: ModelRequest) -> Result<(ModelAnswer, bool), ModelError> {
        let Line { delay, said } = self.rules.line(&request);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let said = said?;
        let finish_reason = match said.tool_calls.is_empty() {
            true => FinishReason::Stop,
            false => FinishReason::ToolCalls,
        };
        let usage = usage(&request.messages, &said);
        let Said { text, is_json, tool_calls } = said;
        let answer =
            ModelAnswer { text, tool_calls, usage, finish_reason, ..ModelAnswer::default() };
        Ok((answer, is_json))
    }
}

impl LanguageModel for RehearsalModel {
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

fn events(answer: ModelAnswer, is_json: bool) -> Vec<ModelEvent> {
    let ModelAnswer { text, tool_calls, usage, finish_reason, .. } = answer;
    let deltas = pieces(&text, is_json).into_iter().map(str::to_owned);
    let calls = tool_calls.into_iter().map(ModelEvent::ToolCall);
    let finished = ModelEvent::Finished { usage, finish_reason, served: None };
    deltas.map(ModelEvent::TextDelta).chain(calls).chain([finished]).collect()
}

/// Pauses before every event but the first and the last.
fn paced(
    events: Vec<ModelEvent>,
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
