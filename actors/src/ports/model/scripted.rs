//! A model for tests: says what it was told to say and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::{
    FinishReason, LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ModelRequest,
    ToolCall, Usage,
};

/// What a [`ScriptedModel`] does when it is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedAnswer {
    /// Answers with a text; each call uses one prompt and one completion token.
    Text(String),
    /// Asks for tools.
    ToolCalls(Vec<ToolCall>),
    /// Answers exactly so.
    Answer(ModelAnswer),
    /// Fails.
    Error(ModelError),
    /// Never answers.
    Hang,
    /// Panics, as a defect of an adapter would.
    Panic,
}

/// The twin of a model for tests. Clones share the script and what was seen.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    remote: bool,
    script: Mutex<VecDeque<ScriptedAnswer>>,
    requests: Mutex<Vec<ModelRequest>>,
    abandoned: AtomicUsize,
}

impl ScriptedModel {
    /// Makes a local model that gives the answers in order, and an error after the last one.
    pub fn local(script: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self::with_place(false, script)
    }

    /// Makes a model whose calls count as leaving the process.
    pub fn remote(script: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self::with_place(true, script)
    }

    /// Everything it was asked so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.inner.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls whose future was dropped before it had an answer.
    pub fn abandoned(&self) -> usize {
        self.inner.abandoned.load(Ordering::SeqCst)
    }

    fn with_place(remote: bool, script: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        let inner = Inner {
            remote,
            script: Mutex::new(script.into_iter().collect()),
            requests: Mutex::default(),
            abandoned: AtomicUsize::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    fn next(&self, request: ModelRequest) -> ScriptedAnswer {
        self.inner.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let mut script = self.inner.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.pop_front().unwrap_or_else(|| ScriptedAnswer::Error(other("the script has ended")))
    }
}

impl LanguageModel for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn is_remote(&self) -> bool {
        self.inner.remote
    }

    fn generate(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let model = self.clone();
        async move {
            let call = Call { model: &model, answered: false };
            perform(model.next(request), call).await
        }
        .boxed()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.generate(request)
            .map(|answered| stream::iter(events(answered)))
            .flatten_stream()
            .boxed()
    }
}

async fn perform(answer: ScriptedAnswer, mut call: Call<'_>) -> Result<ModelAnswer, ModelError> {
    call.answered = answer != ScriptedAnswer::Hang;
    let used =
        Usage { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, ..Usage::default() };
    match answer {
        ScriptedAnswer::Text(text) => {
            Ok(ModelAnswer { text, usage: used, ..ModelAnswer::default() })
        }
        ScriptedAnswer::ToolCalls(tool_calls) => Ok(ModelAnswer {
            tool_calls,
            usage: used,
            finish_reason: FinishReason::ToolCalls,
            ..ModelAnswer::default()
        }),
        ScriptedAnswer::Answer(answer) => Ok(answer),
        ScriptedAnswer::Error(error) => Err(error),
        ScriptedAnswer::Hang => std::future::pending().await,
        // unwinds like a panic, without the hook that would print into the test's output
        ScriptedAnswer::Panic => std::panic::resume_unwind(Box::new("scripted panic")),
    }
}

fn events(answered: Result<ModelAnswer, ModelError>) -> Vec<Result<ModelEvent, ModelError>> {
    let ModelAnswer { text, reasoning, tool_calls, usage, finish_reason, provider_state } =
        match answered {
            Ok(answer) => answer,
            Err(error) => return vec![Err(error)],
        };
    let words = text.split_inclusive(' ').map(|word| ModelEvent::TextDelta(word.to_owned()));
    let calls = tool_calls.into_iter().map(ModelEvent::ToolCall);
    let finished = ModelEvent::Finished { usage, finish_reason };
    let thought = (!reasoning.is_empty()).then_some(ModelEvent::ReasoningDelta(reasoning));
    let state = provider_state.map(ModelEvent::ProviderState);
    thought.into_iter().chain(words).chain(calls).chain(state).chain([finished]).map(Ok).collect()
}

fn other(message: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Other, message)
}

/// Notices when a call is dropped unanswered.
struct Call<'a> {
    model: &'a ScriptedModel,
    answered: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.model.inner.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}
