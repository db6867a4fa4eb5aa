//! The end of a run, or its pause while people are asked: the outcome, and the last event.

use crate::agent::generation::continuation::Continuation;
use crate::agent::generation::turn::Ended;
use crate::agent::generation::{Begins, GenerateError, Generation, GenerationEvent};
use crate::agent::outcome::PendingAsk;
use crate::ports::model::FinishReason;

use super::{Halt, Outcome, Run};

impl Run {
    pub(super) fn generation(&mut self, halt: Halt) -> Generation {
        let waiting = || Ended { finish_reason: FinishReason::ToolCalls, object: None };
        let (ended, asks) = match halt {
            Halt::Ended(ended) => (ended, Vec::new()),
            Halt::HasEnded(ended) => {
                self.is_unchanged = true;
                (ended, Vec::new())
            }
            Halt::PutDown(opened) => {
                self.opened = opened;
                (waiting(), self.asks())
            }
            Halt::StillWaiting => {
                self.is_unchanged = true;
                (waiting(), self.asks())
            }
        };
        let Ended { finish_reason, object } = ended;
        let transcript = &self.transcript;
        Generation {
            id: self.record.id.clone(),
            message_id: self.message_id.clone(),
            text: transcript.last().map(|step| step.text.clone()).unwrap_or_default(),
            object,
            usage: transcript.usage(),
            finish_reason,
            tool_calls: transcript.tool_calls().cloned().collect(),
            tool_results: transcript.tool_results().cloned().collect(),
            stand_in: transcript.last().and_then(|step| step.stand_in()).cloned().map(Box::new),
            asks,
        }
    }

    /// Returns what the run waits for.
    fn asks(&self) -> Vec<PendingAsk> {
        self.continuation.as_ref().map(Continuation::asks).unwrap_or_default()
    }

    /// Records the end, then notifies caller and subscribers.
    pub(super) async fn end(mut self: Box<Self>, outcome: Outcome) -> Outcome {
        // a run that continues asks the model again
        if let Err(error) = &outcome
            && !self.is_interrupted_by_shutdown(&outcome)
        {
            self.keep_unfinished_turn(error);
        }
        let recorded = self.record_end(&outcome).await;
        self.log_end(&outcome);
        let Self { sequencer, subscribers, guards, transcript, begin, begins, .. } = *self;
        // before answering: the agent must not count as working once the caller has the answer
        drop(guards);
        let outcome = recorded.and(outcome);
        let has_waiter = begin.as_ref().is_some_and(|begin| !begin.is_closed());
        let is_cancelled = matches!(outcome, Err(GenerateError::Cancelled));
        let is_for_subscribers = begins == Begins::OnceRecorded && is_cancelled;
        // the caller in `begun` gets this error from the handle
        if outcome.is_err() && has_waiter && !is_for_subscribers {
            subscribers.borrow_mut().forget_first();
        }
        if let Some(mut sequencer) = sequencer {
            if let (Ok(generation), Some(step)) = (&outcome, transcript.last()) {
                generation.asks.iter().for_each(|ask| sequencer.ask(ask.clone()));
                sequencer.finish_turn(step.finish_reason, step.usage);
            }
            let object = outcome.as_ref().ok().and_then(|generation| generation.object.clone());
            sequencer.finish(object, final_event(&outcome));
            subscribers.borrow_mut().send(sequencer.take());
        }
        if let Some(begin) = begin.filter(|_| is_for_subscribers) {
            // the caller may not wait for it
            let _ = begin.send(());
        }
        outcome
    }
}

fn final_event(outcome: &Outcome) -> GenerationEvent {
    match outcome {
        Ok(Generation { finish_reason, usage, stand_in, .. }) => GenerationEvent::Finish {
            finish_reason: *finish_reason,
            usage: *usage,
            stand_in: stand_in.clone(),
        },
        Err(GenerateError::Cancelled) => GenerationEvent::Abort,
        Err(error) => GenerationEvent::Error { message: error.for_callers(), kind: error.kind() },
    }
}
