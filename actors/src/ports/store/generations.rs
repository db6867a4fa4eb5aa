//! History of agents' generations.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AppendError, AskChange, ConversationKey, ConversationWrite, PageSize, Read, Row, TurnTiming,
    Written,
};
use crate::domain::footprint::memory_bytes;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::message::{ToolCall, ToolOutcome, ToolResult};
use crate::domain::time::Timestamp;
use crate::domain::trace::Trace;
use crate::ports::model::{FinishReason, Served, Usage};

/// History entry of a generation, without its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationRecord {
    pub id: String,
    pub agent_id: String,
    pub status: GenerationStatus,
    pub start_time: Timestamp,
    pub end_time: Option<Timestamp>,
    pub input: Value,
    pub output: Option<Value>,
    pub usage: Option<Usage>,
    pub error: Option<String>,
    pub user_id: Option<String>,
    pub conversation_id: Option<String>,
    /// Workflow step that started it. A restart leaves such a generation `working`: the step runs
    /// again, under the same id, and continues it if it has a continuation.
    pub origin: Option<StepOrigin>,
    pub trace: Trace,
}

impl GenerationRecord {
    /// Estimates the memory of texts and values, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let output = self.output.as_ref().map_or(0, memory_bytes);
        let error = self.error.as_ref().map_or(0, String::len) as u64;
        memory_bytes(&self.input) + output + error
    }
}

/// A step of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepOrigin {
    pub execution_id: ExecutionId,
    pub path: StepPath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GenerationStatus {
    Working,
    Completed,
    Error,
    Cancelled,
    /// Waits for people; no process works on it.
    Suspended,
}

impl GenerationStatus {
    /// Returns true if nothing changes later.
    pub fn is_final(self) -> bool {
        match self {
            Self::Working | Self::Suspended => false,
            Self::Completed | Self::Error | Self::Cancelled => true,
        }
    }
}

/// One turn of a generation: the model's answer, and its tools' results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationStep {
    pub text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    pub tool_calls: Vec<ToolCall>,
    /// Results so far; fewer than the calls while tools run.
    pub tool_results: Vec<ToolResult>,
    pub usage: Usage,
    pub finish_reason: FinishReason,
    /// Timing and origin, for traces and metrics; not shown in the history.
    #[serde(rename = "course", default, skip_serializing_if = "TurnTiming::is_unknown")]
    pub timing: TurnTiming,
}

impl GenerationStep {
    /// Returns true if the model answered anything. A question that failed before has only timing.
    pub fn has_content(&self) -> bool {
        !self.text.is_empty()
            || !self.reasoning.is_empty()
            || !self.tool_calls.is_empty()
            || self.timing.error.is_none()
    }

    /// Estimates the memory of texts and values, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let calls = self.tool_calls.iter().map(|call| memory_bytes(&call.input));
        let results = self.tool_results.iter().map(|result| {
            let outcome = match &result.outcome {
                ToolOutcome::Output(value) => memory_bytes(value),
                ToolOutcome::Error(text) | ToolOutcome::Denied(text) => text.len() as u64,
            };
            memory_bytes(&result.input) + outcome
        });
        (self.text.len() + self.reasoning.len()) as u64 + calls.chain(results).sum::<u64>()
    }

    /// Returns the model that answered, if it was a fallback.
    pub fn stand_in(&self) -> Option<&Served> {
        self.timing.served.as_deref().filter(|served| served.instead_of.is_some())
    }

    /// Returns the result of the call with this index, if it is known. Results are in the order of
    /// their calls.
    pub fn result_of(&self, call: usize) -> Option<&ToolResult> {
        let calls = &self.timing.calls;
        calls.get(call)?.end?;
        let before = calls.iter().take(call).filter(|call| call.end.is_some()).count();
        self.tool_results.get(before)
    }
}

/// One atomic record of a generation.
#[derive(Debug, Clone)]
pub struct GenerationWrite {
    /// Row of a new record, from [`Generations::next_generation_row`]. An existing record keeps its
    /// row, which anchors the root of a trace.
    pub row: Row,
    /// Replaces the record with the same id. The agent never changes.
    pub record: GenerationRecord,
    /// New or changed turns, in order, numbered from 0; they replace stored ones. If turn 0 is
    /// among them, the run has started again and all stored turns are removed.
    pub steps: Vec<(u32, Arc<GenerationStep>)>,
    /// Messages for the conversation, in the same commit.
    pub messages: Option<ConversationWrite>,
    /// Change of the continuation and the asks, in the same commit.
    pub continuation: ContinuationChange,
}

/// Change of what an interrupted or suspended generation needs to continue, beside its record and
/// turns. Opaque to stores.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ContinuationChange {
    #[default]
    Keep,
    Put {
        /// JSON. Replaces the stored one, and increments its revision (the first one is 1).
        body: Arc<str>,
        /// Changes of the asks of the generation's calls, in order.
        asks: Vec<AskChange>,
    },
    /// The generation has ended.
    Remove { asks: Vec<AskChange> },
}

impl ContinuationChange {
    /// Returns the changes of asks.
    pub fn asks(&self) -> &[AskChange] {
        match self {
            Self::Keep => &[],
            Self::Put { asks, .. } | Self::Remove { asks } => asks,
        }
    }
}

/// A stored continuation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContinuation {
    /// Number of its newest write.
    pub revision: u64,
    pub body: Arc<str>,
}

/// A generation with its turns.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationEntry {
    pub record: GenerationRecord,
    pub steps: Vec<GenerationStep>,
}

/// A page of an agent's history, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerationPage {
    pub entries: Vec<GenerationEntry>,
    /// Number of entries on all pages.
    pub total: u64,
}

/// Place among a user's generations: by agent, and in the order of their first records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserCursor {
    pub agent_id: String,
    pub number: i64,
}

/// Store of agents' generations.
pub trait Generations: Send + Sync {
    /// Returns a new row number. Never blocks; `None` if the store has none left until it answers
    /// again.
    fn next_generation_row(&self) -> Option<Row>;

    /// Records a generation; resolves once durable. Shares the journal's group commit.
    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>>;

    /// Records like [`Generations::record_generation`], but only if the stored continuation has
    /// this revision; otherwise returns false and changes nothing. Of concurrent writes with one
    /// revision, one succeeds.
    fn settle_generation(&self, revision: u64, write: GenerationWrite) -> Written<bool>;

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>>;

    fn continuation<'a>(&'a self, id: &'a str) -> Read<'a, Option<StoredContinuation>>;

    /// Returns the ids of suspended generations of a conversation.
    fn suspended_in<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Vec<String>>;

    /// Returns the ids of a user's generations that have not ended, in the order of their places, at
    /// most `limit` behind a place.
    fn unfinished_of_user<'a>(
        &'a self,
        user_id: &'a str,
        after: Option<&'a UserCursor>,
        limit: usize,
    ) -> Read<'a, Vec<(UserCursor, String)>>;

    /// Takes over generations that are `working`, have a continuation and no process that works on
    /// them; returns their rows and ids, by row, at most `limit` behind a row. Of concurrent
    /// processes, one takes over a generation. Called like [`Generations::interrupt_working`].
    fn adopt_interrupted(&self, after: Row, limit: usize) -> Written<Vec<(Row, String)>>;

    /// Returns the agent's generations (of one user, if named) in the order of their first record,
    /// newest first, skipping `offset`. The cost does not grow with the history; for one user, it
    /// is that of counting the user's.
    fn generations<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, GenerationPage>;

    /// Marks generations that are still `working`, have no continuation and do not belong to a
    /// workflow step as failed (`interrupted by a restart`), except those of members that are not gone. Called at start, and
    /// after a member is gone.
    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>>;
}
