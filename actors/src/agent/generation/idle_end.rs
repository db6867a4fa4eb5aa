//! Ends a generation that nothing works on: one that waits for people, or cannot be continued.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::tool::WithdrawnQuestion;
use crate::domain::message::{ToolApproval, ToolOutcome};
use crate::domain::time::Timestamp;
use crate::observe::span::SpanEvent;
use crate::observe::trace::generation::{PublishedSpans, new_spans};
use crate::ports::model::Usage;
use crate::ports::store::{
    AskChange, AskState, ContinuationChange, ConversationWrite, GenerationEntry, GenerationRecord,
    GenerationStatus, GenerationStep, GenerationWrite, Generations,
};
use crate::requests::Unavailable;

use super::GenerationDeps;
use super::continuable::{Continuable, Stored};
use super::continuation::{CallState, Continuation};
use super::turn::Transcript;

/// Attempts to end a generation while others change it too.
const ATTEMPTS_MAX: usize = 200;

/// The end of a generation.
#[derive(Clone)]
pub(crate) struct IdleEnd {
    /// Status that the generation must still have; one with another is left alone, because a process
    /// may work on it. `None`: any that is not final.
    pub(crate) from: Option<GenerationStatus>,
    /// Revision that its continuation must still have (0: none). `None`: any.
    pub(crate) revision: Option<u64>,
    pub(crate) status: GenerationStatus,
    pub(crate) error: Option<String>,
    /// Reason for the model and callers why the calls are not made.
    pub(crate) why: String,
    pub(crate) at: Timestamp,
}

/// A generation that has ended.
struct Ended {
    /// As it was before.
    before: GenerationEntry,
    record: GenerationRecord,
    turns: Vec<Arc<GenerationStep>>,
    worked: Option<Duration>,
    questions: Vec<WithdrawnQuestion>,
}

/// Records the end of a generation, and of those that its tools have asked and that wait; counts them,
/// publishes their spans, and notifies tools whose questions are withdrawn. One without a continuation
/// ends if it is `working`. Returns true if this has ended it.
pub(crate) async fn end_and_count(
    deps: &GenerationDeps,
    id: &str,
    end: IdleEnd,
) -> Result<bool, Unavailable> {
    let mut all = Vec::new();
    let has_ended = end_idle(&*deps.generations, id, end, &mut all).await;
    // the spans of a parent end after those of its children
    for mut ended in all.into_iter().rev() {
        let questions = std::mem::take(&mut ended.questions);
        questions.into_iter().for_each(|question| question.notify(&deps.registry.tools));
        let mut turns = ended.turns.iter().map(|turn| &**turn);
        deps.meter.generation_ended(&ended.record, &mut turns, ended.worked);
        if deps.feed.is_watched() {
            deps.feed.publish_spans(ended.spans().into());
        }
    }
    has_ended
}

impl Ended {
    /// Returns the spans that were not published by the processes that ran it.
    fn spans(self) -> Vec<SpanEvent> {
        let Self { before: GenerationEntry { record, steps }, .. } = self;
        let mut published = PublishedSpans::default();
        let steps: Vec<_> = steps.into_iter().map(Arc::new).collect();
        drop(new_spans(&Arc::new(record), steps.iter(), &mut published));
        new_spans(&Arc::new(self.record), self.turns.iter(), &mut published)
    }
}

/// Ends a generation and those that its tools have asked; adds them, the first before its children.
async fn end_idle(
    store: &dyn Generations,
    id: &str,
    end: IdleEnd,
    all: &mut Vec<Ended>,
) -> Result<bool, Unavailable> {
    for _ in 0..ATTEMPTS_MAX {
        let is_meant = |status: GenerationStatus| match end.from {
            Some(from) => status == from,
            None => !status.is_final(),
        };
        let (entry, revision, continuation) = match Stored::read(store, id).await? {
            Some(Stored::Continuable(found)) => {
                let Continuable { entry, continuation, revision } = *found;
                (entry, revision, Some(continuation))
            }
            Some(Stored::Alone(entry)) => (*entry, 0, None),
            Some(Stored::Damaged(entry, _)) if is_meant(entry.record.status) => {
                return Err(Unavailable::Corrupt(Arc::from(id)));
            }
            Some(Stored::Damaged(..)) | None => return Ok(false),
        };
        let is_changed = end.revision.is_some_and(|meant| meant != revision);
        if is_changed || !is_meant(entry.record.status) {
            return Ok(false);
        }
        let children: Vec<_> = continuation.iter().flat_map(Continuation::children).collect();
        let worked =
            continuation.as_ref().map(|continuation| Duration::from_millis(continuation.worked_ms));
        let questions = continuation.as_ref().map(Continuation::open_questions).unwrap_or_default();
        let before = entry.clone();
        let (write, turns) = end_write(entry, continuation, end.clone());
        let ended = Ended { before, record: write.record.clone(), turns, worked, questions };
        if store.settle_generation(revision, write).await.map_err(Unavailable::from)? {
            all.push(ended);
            for child in children {
                let cancelled = GenerationStatus::Cancelled;
                let end = IdleEnd {
                    from: None,
                    revision: None,
                    status: cancelled,
                    error: None,
                    ..end.clone()
                };
                Box::pin(end_idle(store, &child, end, all)).await?;
            }
            return Ok(true);
        }
    }
    Err(Unavailable::Busy { execution: None })
}

/// Returns the write of the assistant's message as the continuation has it; `None` without memory.
pub(crate) fn conversation_of(
    steps: Vec<GenerationStep>,
    continuation: &Continuation,
    generation_id: &str,
    at: Timestamp,
) -> Option<ConversationWrite> {
    let memory = continuation.memory.clone()?;
    let waiting: Vec<_> =
        continuation.calls.iter().map(|call| Arc::clone(&call.tool_call_id)).collect();
    let parts =
        Transcript::restored(steps, continuation.usage).parts(&continuation.approvals, &waiting);
    Some(memory.write(parts, continuation.approved_tools.clone(), generation_id, at))
}

/// Returns the record of the end, and all turns. Open asks are withdrawn, and their calls count as
/// denied.
fn end_write(
    entry: GenerationEntry,
    continuation: Option<Continuation>,
    end: IdleEnd,
) -> (GenerationWrite, Vec<Arc<GenerationStep>>) {
    let IdleEnd { status, error, why, at, .. } = end;
    let GenerationEntry { mut record, steps } = entry;
    (record.status, record.end_time, record.error) = (status, Some(at), error);
    let Some(continuation) = continuation else {
        // the entry exists and keeps its row
        let (row, continuation) = (0, ContinuationChange::Keep);
        let turns = steps.into_iter().map(Arc::new).collect();
        let write =
            GenerationWrite { row, record, steps: Vec::new(), messages: None, continuation };
        return (write, turns);
    };
    let mut transcript = Transcript::restored(steps, continuation.usage);
    let mut asks = Vec::new();
    for call in &continuation.calls {
        if let CallState::Asked(asked) = &call.state {
            let (id, state) = (Arc::clone(&asked.ask.ask_id), AskState::Withdrawn);
            asks.push(AskChange::Close { id, state, at, answer: None });
        }
        if !transcript.has_result(call.number) {
            let denied = ToolOutcome::Denied(why.clone());
            drop(transcript.returned(call.number, denied, Usage::default(), at));
        }
    }
    let approvals: Vec<_> =
        continuation.approvals.into_iter().map(|it| decided(it, &why)).collect();
    let parts = transcript.parts(&approvals, &[]);
    let approved_tools = continuation.approved_tools;
    let messages =
        continuation.memory.map(|memory| memory.write(parts, approved_tools, &record.id, at));
    record.usage = Some(transcript.usage());
    let turns = transcript.steps().map(Arc::clone).collect();
    let write = GenerationWrite {
        // the entry exists and keeps its row
        row: 0,
        record,
        steps: transcript.unrecorded(),
        messages,
        continuation: ContinuationChange::Remove { asks },
    };
    (write, turns)
}

/// Returns an approval that counts as refused unless it was answered.
fn decided(approval: ToolApproval, why: &str) -> ToolApproval {
    match approval.approved {
        Some(_) => approval,
        None => ToolApproval { approved: Some(false), reason: Some(why.to_owned()), ..approval },
    }
}
