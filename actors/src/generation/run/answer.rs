//! Asking the model: at once where nobody reads live, piece by piece where somebody does.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};

use crate::generation::GenerateError;
use crate::ports::model::{ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ModelRequest};

use super::Run;

/// Pieces that are passed on at once.
const BATCH_MAX: usize = 64;

impl Run {
    pub(super) async fn ask(
        &mut self,
        request: ModelRequest,
    ) -> Result<ModelAnswer, GenerateError> {
        if self.speech.is_some() {
            return self.listen(request).await;
        }
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
        self.heard.hear(&piece)?;
        if let Some(speech) = &mut self.speech {
            speech.hear(piece);
        }
        Ok(())
    }

    /// What was heard of a turn that was stopped belongs to the history as well.
    pub(super) fn keep_unfinished_turn(&mut self) {
        let heard = self.heard.unfinished();
        if !heard.text.is_empty() || !heard.reasoning.is_empty() {
            // no tool was called: these calls were never complete
            self.transcript.push(&ModelAnswer { tool_calls: Vec::new(), ..heard });
        }
    }
}

/// A defect of a model's adapter fails its generation. What it said is in the panic's own
/// report, not for callers.
fn panicked<T>(_: Box<dyn Any + Send>) -> Result<T, ModelError> {
    let message = "the model stopped unexpectedly";
    Err(ModelError::new(ModelErrorKind::Other, message))
}
