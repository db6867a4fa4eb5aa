//! Asking the model: at once where nobody reads live, piece by piece where somebody does.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};

use crate::agent::generation::GenerateError;
use crate::observe::trace::generation::chat_span;
use crate::ports::model::{ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use crate::ports::store::{AskedWith, Period, TurnError, TurnErrorKind, TurnTiming};

use super::Run;

/// Pieces that are passed on at once.
const BATCH_MAX: usize = 64;

impl Run {
    /// Asks the question; the turn that comes of it says how that went.
    pub(super) async fn ask(
        &mut self,
        mut request: ModelRequest,
    ) -> Result<ModelAnswer, GenerateError> {
        if self.model.is_remote() {
            let trace = &self.record.trace;
            request.trace = Some(trace.below(chat_span(trace, &self.id, self.transcript.len())));
        }
        self.transcript.ask(TurnTiming {
            chat: Some(Period { start: self.deps.clock.now(), end: None }),
            asked_with: AskedWith::new(&request.options, self.sequencer.is_some()),
            memory_read: self.memory_read.take(),
            ..TurnTiming::default()
        });
        let mut answered = match self.sequencer.is_some() {
            true => self.listen(request).await,
            false => self.wait(request).await,
        };
        let served = answered.as_mut().ok().and_then(|answer| answer.served.take());
        let served = served.unwrap_or_else(|| Box::new(self.model.expected()));
        let error = answered.as_ref().err().map(turn_error);
        if let Some(course) = self.transcript.asking() {
            course.served = Some(served);
        }
        self.transcript.heard(self.deps.clock.now(), error);
        answered
    }

    async fn wait(&mut self, request: ModelRequest) -> Result<ModelAnswer, GenerateError> {
        let model = Arc::clone(&self.model);
        let answering = AssertUnwindSafe(async move { model.generate(request).await });
        let answer = answering.catch_unwind().await.unwrap_or_else(panicked)?;
        Ok(self.heard.whole(answer)?)
    }

    async fn listen(&mut self, request: ModelRequest) -> Result<ModelAnswer, GenerateError> {
        let model = Arc::clone(&self.model);
        let pieces = stream::once(async move { model.stream(request) }).flatten();
        let mut pieces = pin!(AssertUnwindSafe(pieces).catch_unwind().ready_chunks(BATCH_MAX));
        while !self.heard.is_finished() {
            let Some(batch) = pieces.next().await else { break };
            let is_full = batch.len() == BATCH_MAX;
            let heard =
                batch.into_iter().try_for_each(|piece| self.hear(piece.unwrap_or_else(panicked)?));
            // what was said before it failed was said
            self.tell_readers().await?;
            heard?;
            if is_full {
                // a model that always has more must not keep others from their turn
                tokio::task::yield_now().await;
            }
        }
        Ok(self.heard.finish()?)
    }

    fn hear(&mut self, piece: ModelEvent) -> Result<(), ModelError> {
        let piece = self.heard.kept(piece);
        self.heard.hear(&piece)?;
        if let Some(course) = self.transcript.asking() {
            course.first_piece.get_or_insert_with(|| self.deps.clock.now());
        }
        if let Some(sequencer) = &mut self.sequencer {
            sequencer.hear(piece);
        }
        Ok(())
    }

    /// What was heard of a turn that failed or was stopped belongs to the history as well, and be
    /// it only that it was asked for.
    pub(super) fn keep_unfinished_turn(&mut self, error: &GenerateError) {
        let heard = self.heard.unfinished();
        let expected = self.model.expected();
        let Some(course) = self.transcript.asking() else { return };
        course.served.get_or_insert_with(|| Box::new(expected));
        self.transcript.heard(self.deps.clock.now(), Some(turn_error(error)));
        // no tool was called: these calls were never complete
        self.transcript.push(&ModelAnswer { tool_calls: Vec::new(), ..heard });
    }
}

fn turn_error(error: &GenerateError) -> TurnError {
    let kind = match error {
        GenerateError::Model(error) => error.kind.into(),
        GenerateError::Cancelled | GenerateError::Unavailable(_) => TurnErrorKind::Stopped,
        GenerateError::UnknownAgent(_)
        | GenerateError::InvalidSchema(_)
        | GenerateError::InvalidRequest(_)
        | GenerateError::Failed(_)
        | GenerateError::Exists(_) => TurnErrorKind::Other,
    };
    TurnError { kind, message: error.for_callers() }
}

/// A defect of a model's adapter fails its generation. What it said is in the panic's own
/// report, not for callers.
fn panicked<T>(_: Box<dyn Any + Send>) -> Result<T, ModelError> {
    let message = "the model stopped unexpectedly";
    Err(ModelError::new(ModelErrorKind::Other, message))
}
