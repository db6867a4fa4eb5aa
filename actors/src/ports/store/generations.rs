//! The history of agents' generations.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AppendError, ConversationWrite, Read, Row, TurnTiming};
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::message::{ToolCall, ToolResult};
use crate::domain::time::Timestamp;
use crate::domain::trace::Trace;
use crate::ports::model::{FinishReason, Served, Usage};

/// A generation as its history shows it, without its steps.
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
    /// The step of a workflow that it works for. A restart leaves it `working`: the step runs
    /// again, under the same id.
    pub origin: Option<StepOrigin>,
    pub trace: Trace,
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
}

/// One turn of a generation: what the model said, and what its tools gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationStep {
    pub text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    pub tool_calls: Vec<ToolCall>,
    /// Those that are known; fewer than the calls while tools work.
    pub tool_results: Vec<ToolResult>,
    pub usage: Usage,
    pub finish_reason: FinishReason,
    /// How it went: for traces and measures, no part of what the history shows.
    #[serde(default, skip_serializing_if = "TurnTiming::is_unknown")]
    pub course: TurnTiming,
}

impl GenerationStep {
    /// Whether the model said anything in it. A question that failed before is a turn of its
    /// course alone.
    pub fn has_content(&self) -> bool {
        !self.text.is_empty()
            || !self.reasoning.is_empty()
            || !self.tool_calls.is_empty()
            || self.course.error.is_none()
    }

    /// Who gave it, where a model stood in for the one that is configured.
    pub fn stand_in(&self) -> Option<&Served> {
        self.course.served.as_deref().filter(|served| served.instead_of.is_some())
    }

    /// What the call of this number gave, if that is known. The results stand in the order of
    /// their calls.
    pub fn result_of(&self, call: usize) -> Option<&ToolResult> {
        let calls = &self.course.calls;
        calls.get(call)?.end?;
        let before = calls.iter().take(call).filter(|call| call.end.is_some()).count();
        self.tool_results.get(before)
    }
}

/// What a generation records at once, in one commit.
#[derive(Debug, Clone)]
pub struct GenerationWrite {
    /// Where a new record goes: from [`Generations::next_generation_row`]. One that exists stays
    /// where it is; the anchor of a root is the number that it has got first.
    pub row: Row,
    /// By its id; the newest wins. The agent is always the same.
    pub record: GenerationRecord,
    /// Turns that are new or have changed, in order, by their number from 0 on; the newest wins.
    /// The others stay as they are, unless turn 0 is among these: the run has begun anew, and
    /// nothing of an earlier one stays.
    pub steps: Vec<(u32, Arc<GenerationStep>)>,
    /// What becomes part of a conversation with it.
    pub messages: Option<ConversationWrite>,
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
    /// Of all pages.
    pub total: u64,
}

/// History of agents' generations.
pub trait Generations: Send + Sync {
    /// A fresh row number. Never blocks.
    fn next_generation_row(&self) -> Row;

    /// Resolves when it is durable. Shares the journal's group commit.
    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>>;

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>>;

    /// The agent's generations (those of one user when it is named) in the order of their first
    /// record, newest first, without the newest `offset`. The cost does not grow with the history;
    /// of one user, it is that of counting this user's.
    fn generations<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        offset: u64,
        limit: usize,
    ) -> Read<'a, GenerationPage>;

    /// Marks what is still `working` and does not belong to a step of a workflow as failed
    /// (`interrupted by a restart`). Called at start.
    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>>;
}
