//! A model for tests, with scripted answers and recorded requests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::{
    FinishReason, LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ModelRequest,
    ToolCall, Usage,
};

/// Behaviour of a [`ScriptedModel`] for one request.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedAnswer {
    /// Answers with a text; each call uses one prompt and one completion token.
    Text(String),
    /// Calls tools.
    ToolCalls(Vec<ToolCall>),
    /// Gives this answer.
    Answer(ModelAnswer),
    /// Answers piece by piece. Pauses follow Tokio's time.
    Pieces(Vec<ScriptedPiece>),
    /// Fails.
    Error(ModelError),
    /// Never answers.
    Hang,
    /// Panics, as a defect of an adapter would.
    Panic,
}

/// One element of a streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedPiece {
    Say(ModelEvent),
    Pause(Duration),
    Fail(ModelError),
    /// Never ends.
    Hang,
    /// Panics, as a defect of an adapter would.
    Panic,
}

impl From<ModelEvent> for ScriptedPiece {
    fn from(event: ModelEvent) -> Self {
        Self::Say(event)
    }
}

/// A scripted model. Clones share script and records.
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
    /// Creates a local model that gives the answers in order, and an error after the last one.
    pub fn local(script: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self::with_place(false, script)
    }

    /// Creates a model whose calls count as leaving the process.
    pub fn remote(script: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self::with_place(true, script)
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.inner.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of calls dropped before their end.
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

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let model = self.clone();
        let begun = async move {
            let pieces = pieces(model.next(request));
            let call = Call { model, answered: false };
            stream::unfold((call, VecDeque::from(pieces)), |(call, pieces)| {
                next_piece(call, pieces)
            })
        };
        begun.flatten_stream().boxed()
    }
}

type Piece = Result<ModelEvent, ModelError>;

/// Returns the next piece. The call counts as answered after its last piece.
async fn next_piece(
    mut call: Call,
    mut pieces: VecDeque<ScriptedPiece>,
) -> Option<(Piece, (Call, VecDeque<ScriptedPiece>))> {
    loop {
        match pieces.pop_front()? {
            ScriptedPiece::Say(event) => {
                call.answered = matches!(event, ModelEvent::Finished { .. });
                return Some((Ok(event), (call, pieces)));
            }
            ScriptedPiece::Pause(pause) => tokio::time::sleep(pause).await,
            ScriptedPiece::Fail(error) => {
                call.answered = true;
                pieces.clear();
                return Some((Err(error), (call, pieces)));
            }
            ScriptedPiece::Hang => std::future::pending().await,
            ScriptedPiece::Panic => {
                call.answered = true;
                // unwinds like a panic, without the panic hook's output
                std::panic::resume_unwind(Box::new("scripted panic"));
            }
        }
    }
}

fn pieces(answer: ScriptedAnswer) -> Vec<ScriptedPiece> {
    let usage =
        Usage { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, ..Usage::default() };
    match answer {
        ScriptedAnswer::Text(text) => events(ModelAnswer { text, usage, ..ModelAnswer::default() }),
        ScriptedAnswer::ToolCalls(tool_calls) => events(ModelAnswer {
            tool_calls,
            usage,
            finish_reason: FinishReason::ToolCalls,
            ..ModelAnswer::default()
        }),
        ScriptedAnswer::Answer(answer) => events(answer),
        ScriptedAnswer::Pieces(pieces) => pieces,
        ScriptedAnswer::Error(error) => vec![ScriptedPiece::Fail(error)],
        ScriptedAnswer::Hang => vec![ScriptedPiece::Hang],
        ScriptedAnswer::Panic => vec![ScriptedPiece::Panic],
    }
}

fn events(answer: ModelAnswer) -> Vec<ScriptedPiece> {
    let ModelAnswer { text, reasoning, tool_calls, usage, finish_reason, provider_state, served } =
        answer;
    let texts = text.split_inclusive(' ').map(|word| ModelEvent::TextDelta(word.to_owned()));
    let calls = tool_calls.into_iter().map(ModelEvent::ToolCall);
    let finished = ModelEvent::Finished { usage, finish_reason, served };
    let thought = (!reasoning.is_empty()).then_some(ModelEvent::ReasoningDelta(reasoning));
    let state = provider_state.map(ModelEvent::ProviderState);
    let events = thought.into_iter().chain(texts).chain(calls).chain(state).chain([finished]);
    events.map(ScriptedPiece::Say).collect()
}

fn other(message: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Other, message)
}

/// Counts a call that is dropped unanswered.
struct Call {
    model: ScriptedModel,
    answered: bool,
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.answered {
            self.model.inner.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_without_an_end_is_an_error() {
        let said = ScriptedPiece::Say(ModelEvent::TextDelta("half".to_owned()));
        let model = ScriptedModel::local([
            ScriptedAnswer::Pieces(vec![said]),
            ScriptedAnswer::Text("whole".to_owned()),
        ]);
        let broken = model.generate(ModelRequest::default()).await;
        assert_eq!(broken, Err(ModelError::incomplete()));
        assert_eq!(model.generate(ModelRequest::default()).await.unwrap().text, "whole");
    }
}
