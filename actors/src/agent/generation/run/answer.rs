//! Asks the model: as a stream with live subscribers, as a whole without.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;

use crate::agent::generation::GenerateError;
use crate::agent::generation::object::{Unfit, read_object};
use crate::agent::tool::Content;
use crate::domain::effort::{Budget, within};
use crate::domain::schema::Schema;
use crate::observe::trace::generation::chat_span;
use crate::ports::model::{ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use crate::ports::store::{AskedWith, Period, TurnError, TurnErrorKind, TurnTiming};

use crate::shard::evaluation::Cancel;

use super::{Run, ending};

/// Maximum number of pieces passed on together.
const BATCH_MAX: usize = 64;

impl Run {
    /// Asks the model. The turn records timing and errors.
    pub(super) async fn ask(
        &mut self,
        mut request: ModelRequest,
    ) -> Result<ModelAnswer, GenerateError> {
        request = Content::read_by(&*self.model, request);
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
            true => self.stream_answer(request).await,
            false => self.whole_answer(request).await,
        };
        let served = answered.as_mut().ok().and_then(|answer| answer.served.take());
        let served = served.unwrap_or_else(|| Box::new(self.model.expected()));
        let error = answered.as_ref().err().map(turn_error);
        if let Some(timing) = self.transcript.asking() {
            timing.served = Some(served);
        }
        self.transcript.answered(self.deps.clock.now(), error);
        answered
    }

    async fn whole_answer(&mut self, request: ModelRequest) -> Result<ModelAnswer, GenerateError> {
        let model = Arc::clone(&self.model);
        let answering = AssertUnwindSafe(async move { model.generate(request).await });
        let answer = answering.catch_unwind().await.unwrap_or_else(panicked)?;
        Ok(self.answer.whole(answer)?)
    }

    async fn stream_answer(&mut self, request: ModelRequest) -> Result<ModelAnswer, GenerateError> {
        let model = Arc::clone(&self.model);
        let pieces = stream::once(async move { model.stream(request) }).flatten();
        let mut pieces = pin!(AssertUnwindSafe(pieces).catch_unwind().ready_chunks(BATCH_MAX));
        while !self.answer.is_finished() {
            let Some(batch) = pieces.next().await else { break };
            let is_full = batch.len() == BATCH_MAX;
            let accepted = batch
                .into_iter()
                .try_for_each(|piece| self.take_piece(piece.unwrap_or_else(panicked)?));
            // pieces before a failure are sent too
            self.publish().await?;
            accepted?;
            if is_full {
                // a model that is always ready must not starve other tasks
                tokio::task::yield_now().await;
            }
        }
        Ok(self.answer.finish()?)
    }

    fn take_piece(&mut self, piece: ModelEvent) -> Result<(), ModelError> {
        let piece = self.answer.normalized(piece);
        self.answer.push(&piece)?;
        if let Some(timing) = self.transcript.asking() {
            timing.first_piece.get_or_insert_with(|| self.deps.clock.now());
        }
        if let Some(sequencer) = &mut self.sequencer {
            sequencer.push(piece);
        }
        Ok(())
    }

    /// Parses and validates an object, on a worker if that exceeds the budget of a turn.
    pub(super) async fn read_object(
        &self,
        text: &str,
        schema: &Schema,
    ) -> Result<Result<Value, Unfit>, GenerateError> {
        let depth_max = self.deps.tool_limits.value_depth_max;
        let (read, effort) = within(&Budget::turn(), || read_object(text, schema, depth_max));
        if !effort.is_exceeded {
            return Ok(read);
        }
        let (text, schema) = (text.to_owned(), schema.clone());
        let read = self.deps.evaluations.evaluate(self.lane(), Cancel::default(), move |budget| {
            within(budget, || read_object(&text, &schema, depth_max)).0
        });
        read.await.ok_or_else(ending)
    }

    /// Adds a failed or stopped turn to the history, at least the question.
    pub(super) fn keep_unfinished_turn(&mut self, error: &GenerateError) {
        let unfinished = self.answer.unfinished();
        let expected = self.model.expected();
        let Some(timing) = self.transcript.asking() else { return };
        timing.served.get_or_insert_with(|| Box::new(expected));
        self.transcript.answered(self.deps.clock.now(), Some(turn_error(error)));
        // these calls were never complete, and no tool was called
        self.transcript.push(&ModelAnswer { tool_calls: Vec::new(), ..unfinished });
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

/// Failure for a panic of a model's adapter. The panic message is in the panic hook's log only.
fn panicked<T>(_: Box<dyn Any + Send>) -> Result<T, ModelError> {
    let message = "the model stopped unexpectedly";
    Err(ModelError::new(ModelErrorKind::Other, message))
}
