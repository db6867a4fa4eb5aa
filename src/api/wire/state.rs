//! The state of executions and their lists on the wire.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::model::Usage;
use greenroom_actors::ports::store::{Cursor, Projection, ReplayedFrom};
use greenroom_actors::requests::{CompensationState, ExecutionState, Lineage, StepState};
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::api::wire::execution::PrincipalView;
use crate::api::wire::failure::{AttemptErrorView, FailureView};
use crate::api::wire::shape::{UsageShape, execution_status, step_status};
use crate::api::wire::suspension::{SuspensionView, SuspensionsView};

/// State of an execution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionState)]
#[serde(rename_all = "camelCase")]
pub struct StateView<'a> {
    pub execution_id: &'a str,
    pub id: &'a str,
    pub workflow_id: &'a str,
    #[schema(schema_with = execution_status)]
    pub status: &'static str,
    pub start_at: Iso,
    pub created_at: Iso,
    pub updated_at: Iso,
    #[schema(required)]
    pub end_at: Option<Iso>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<SuspensionView<'a>>,
    pub suspensions: Vec<SuspensionView<'a>>,
    pub input: &'a Value,
    pub context: &'a Value,
    #[schema(value_type = Value, required)]
    pub result: Option<&'a Value>,
    #[schema(required)]
    pub error: Option<FailureView<'a>>,
    #[schema(required)]
    pub user_id: Option<&'a str>,
    #[schema(required)]
    pub conversation_id: Option<&'a str>,
    #[schema(required)]
    pub parent_execution_id: Option<&'a str>,
    /// Execution and step that this replay started from.
    #[schema(required)]
    pub replayed_from: Option<LineageView<'a>>,
    /// User who requested the replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_by: Option<PrincipalView<'a>>,
    /// Reason of the cancellation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<PrincipalView<'a>>,
    /// Compensation of its completed steps, once it has failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compensation: Option<CompensationView<'a>>,
    /// Completed execution whose steps it compensates, because the execution above has failed or no
    /// longer needs it. `startAt` is the start of this compensation; `steps` are those of the completed
    /// execution, with their times, and the compensations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reversal_of: Option<&'a str>,
    /// The API through which it was started, or what it is part of: `mcp`, or `mcp:NAME` of a face with a name, and
    /// `openai`. Absent for the REST API and programs in Rust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<&'a str>,
    pub trace_id: &'a str,
    pub definition_hash: &'a str,
    pub steps: Vec<StepStateView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<UsageShape>)]
    pub usage: Option<Usage>,
    pub last_sequence: u64,
}

impl<'a> StateView<'a> {
    /// Shows the state of an execution.
    pub fn of(state: &'a ExecutionState) -> Self {
        let header = &*state.header;
        let lineage = state.replayed_from.as_ref();
        Self {
            execution_id: header.id.as_str(),
            id: header.id.as_str(),
            workflow_id: &header.workflow_id,
            status: state.status.as_str(),
            start_at: Iso(header.created_at),
            created_at: Iso(header.created_at),
            updated_at: Iso(state.updated_at),
            end_at: state.ended_at.map(Iso),
            suspension: state.suspension.as_deref().map(SuspensionView::in_state),
            suspensions: state.suspensions.iter().map(SuspensionView::in_state).collect(),
            input: &state.input,
            context: &state.context,
            result: state.result.as_deref(),
            error: state.error.as_ref().map(FailureView::of),
            user_id: header.user_id.as_deref(),
            conversation_id: header.conversation_id.as_deref(),
            parent_execution_id: header.parent.as_ref().map(|parent| parent.execution.as_str()),
            replayed_from: lineage.map(LineageView::of),
            replayed_by: lineage.and_then(|it| it.by.as_deref()).map(PrincipalView::of),
            reason: state.cancel_reason.as_deref(),
            cancelled_by: state.cancelled_by.as_deref().map(PrincipalView::of),
            compensation: state.compensation.as_ref().map(CompensationView::of),
            reversal_of: state.reversal_of.as_ref().map(|id| id.as_str()),
            via: header.trace.via.as_deref(),
            trace_id: &header.trace.id,
            definition_hash: &header.definition_hash,
            steps: state.steps.iter().map(StepStateView::of).collect(),
            usage: state.usage,
            last_sequence: state.last_seq,
        }
    }

    /// Shows null in place of the input, the context, the result and the outputs, and neither
    /// payloads nor data of resumes.
    #[must_use]
    pub fn without_values(mut self) -> Self {
        (self.input, self.context, self.result) = (&Value::Null, &Value::Null, None);
        for step in &mut self.steps {
            (step.output, step.resume_data) = (None, None);
        }
        self.suspension = self.suspension.map(SuspensionView::without_payload);
        let suspensions = self.suspensions.into_iter();
        self.suspensions = suspensions.map(SuspensionView::without_payload).collect();
        self
    }
}

/// `compensation` of the state. The compensations themselves are among the steps; their paths end in
/// `:compensate`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompensationState)]
#[serde(rename_all = "camelCase")]
pub struct CompensationView<'a> {
    pub since: Iso,
    /// The error, or the reason of the cancellation; for a reversal, that of the execution above.
    pub reason: &'a str,
    /// Number of steps that are compensated.
    pub completed: usize,
    /// Number of steps whose compensation a person skipped, in a reversal also a part of it. Among the steps, these
    /// have the status `skipped`, and `resumedBy` says who it was, if that is known.
    pub skipped: usize,
    /// Number of steps that are neither.
    pub remaining: usize,
}

impl<'a> CompensationView<'a> {
    fn of(state: &'a CompensationState) -> Self {
        let CompensationState { since, reason, completed, skipped, remaining } = state;
        let (completed, skipped, remaining) = (*completed, *skipped, *remaining);
        Self { since: Iso(*since), reason, completed, skipped, remaining }
    }
}

/// `replayedFrom` of the state: an execution, and the step that the replay started from.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Lineage)]
#[serde(rename_all = "camelCase")]
pub struct LineageView<'a> {
    pub execution_id: &'a str,
    pub step_id: &'a str,
}

impl<'a> LineageView<'a> {
    /// Shows the origin of a replay.
    pub fn of(lineage: &'a Lineage) -> Self {
        Self { execution_id: lineage.execution_id.as_str(), step_id: &lineage.step_id }
    }

    /// Shows the origin of a replay as its row has it.
    pub fn recorded(from: &'a ReplayedFrom) -> Self {
        Self { execution_id: from.execution.as_str(), step_id: &from.step_id }
    }
}

/// Item of `steps` of the state.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StepState)]
#[serde(rename_all = "camelCase")]
pub struct StepStateView<'a> {
    pub step_id: &'a str,
    pub path: &'a str,
    #[schema(schema_with = step_status)]
    pub status: &'static str,
    pub attempts: u32,
    #[schema(required)]
    #[serialize_always]
    pub started_at: Option<Iso>,
    #[schema(required)]
    #[serialize_always]
    pub ended_at: Option<Iso>,
    #[schema(value_type = Value, required)]
    #[serialize_always]
    pub output: Option<&'a Value>,
    pub error: Option<&'a str>,
    /// Failed attempts, oldest first. If there are many, only the newest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<AttemptErrorView<'a>>,
    pub child_execution_id: Option<&'a str>,
    /// Newest generation of an andAgent step, in the history of its agent.
    pub generation_id: Option<&'a str>,
    /// Time of the last resume, as `resumedBy` and `resumeData`. For andWorkflow steps those of the
    /// child, whose state has the data.
    pub resumed_at: Option<Iso>,
    pub resumed_by: Option<PrincipalView<'a>>,
    /// True if the deadline passed and the value of the definition resumed the step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub resumed_by_deadline: bool,
    /// `id` of the suspension that was resumed.
    pub resumed_suspension_id: Option<&'a str>,
    pub resume_data: Option<&'a Value>,
}

impl<'a> StepStateView<'a> {
    fn of(step: &'a StepState) -> Self {
        let resume = step.resume.as_ref();
        Self {
            step_id: &step.step_id,
            path: &step.path,
            status: step.status.as_str(),
            attempts: step.attempts,
            started_at: step.started_at.map(Iso),
            ended_at: step.ended_at.map(Iso),
            output: step.output.as_deref(),
            error: step.error.as_deref(),
            errors: AttemptErrorView::all(&step.errors),
            child_execution_id: step.child.as_ref().map(|child| child.as_str()),
            generation_id: step.generation_id.as_deref(),
            resumed_at: resume.map(|resume| Iso(resume.at)),
            resumed_by: resume.and_then(|resume| resume.by.as_deref()).map(PrincipalView::of),
            resumed_by_deadline: resume.is_some_and(|resume| resume.by_deadline),
            resumed_suspension_id: resume.and_then(|resume| resume.id.as_deref()),
            resume_data: resume.and_then(|resume| resume.data.as_deref()),
        }
    }
}

/// Page of executions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionPage)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionsView<'a> {
    pub executions: Vec<ExecutionItemView<'a>>,
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// Item of a list of executions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionItem)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionItemView<'a> {
    pub execution_id: &'a str,
    pub workflow_id: &'a str,
    #[schema(schema_with = execution_status)]
    pub status: &'static str,
    pub start_at: Iso,
    pub updated_at: Iso,
    #[schema(required)]
    pub end_at: Option<Iso>,
    /// Failure, shortened; the state has the full text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureView<'a>>,
    #[serde(flatten)]
    pub suspensions: SuspensionsView<'a>,
    #[schema(required)]
    pub user_id: Option<&'a str>,
    #[schema(required)]
    pub conversation_id: Option<&'a str>,
    #[schema(required)]
    pub parent_execution_id: Option<&'a str>,
    /// Execution and step that this replay started from. Absent in records of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_from: Option<LineageView<'a>>,
    /// The API through which it was started, or what it is part of: `mcp`, or `mcp:NAME` of a face with a name, and
    /// `openai`. Absent for the REST API and programs in Rust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<&'a str>,
    pub last_sequence: u64,
}

impl<'a> ExecutionsView<'a> {
    /// Shows a page of a list.
    pub fn of(rows: &'a [Projection], next_cursor: Option<String>) -> Self {
        Self { executions: rows.iter().map(ExecutionItemView::of).collect(), next_cursor }
    }
}

impl<'a> ExecutionItemView<'a> {
    pub fn of(row: &'a Projection) -> Self {
        let header = &*row.header;
        let (first, others) = (row.suspension.as_deref(), row.others.as_deref());
        Self {
            execution_id: header.id.as_str(),
            workflow_id: &header.workflow_id,
            status: row.status.as_str(),
            start_at: Iso(header.created_at),
            updated_at: Iso(row.updated_at),
            end_at: row.ended_at.map(Iso),
            error: row.error.as_deref().map(FailureView::of),
            suspensions: SuspensionsView::of(first, others, SuspensionView::in_state),
            user_id: header.user_id.as_deref(),
            conversation_id: header.conversation_id.as_deref(),
            parent_execution_id: header.parent.as_ref().map(|parent| parent.execution.as_str()),
            replayed_from: row.replayed_from.as_ref().map(LineageView::recorded),
            via: header.trace.via.as_deref(),
            last_sequence: row.last_seq,
        }
    }
}

/// Formats a position in a list as an opaque cursor.
pub fn cursor_text(cursor: Cursor) -> String {
    format!("{:016x}{:016x}", cursor.at.0, cursor.row)
}

/// Parses the text of [`cursor_text`].
pub fn cursor_of(text: &str) -> Option<Cursor> {
    let (at, row) = text.split_at_checked(16)?;
    Some(Cursor { at: Timestamp(number_of(at)?), row: number_of(row)? })
}

/// Parses 16 hexadecimal digits.
pub fn number_of(text: &str) -> Option<i64> {
    if text.len() != 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(text, 16).ok().map(u64::cast_signed)
}

/// Prefix of cursors of lists by end time; they are invalid in lists by start time.
const OF_ENDS: char = 'e';

/// Formats a position in a list of executions by end or start time.
pub fn list_cursor_text(cursor: Cursor, is_of_ends: bool) -> String {
    let text = cursor_text(cursor);
    if is_of_ends { format!("{OF_ENDS}{text}") } else { text }
}

/// Parses the text of [`list_cursor_text`] of a list with the same order.
pub fn list_cursor_of(text: &str, is_of_ends: bool) -> Option<Cursor> {
    cursor_of(if is_of_ends { text.strip_prefix(OF_ENDS)? } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_survive_a_round_trip() {
        for (created_at, row) in [(0, 1), (1_700_000_000_123, i64::MAX), (-1, 7)] {
            let cursor = Cursor { at: Timestamp(created_at), row };
            assert_eq!(cursor_of(&cursor_text(cursor)), Some(cursor));
        }
        for bad in ["", "x", "+0000000000000000000000000000001", &"g".repeat(32)] {
            assert_eq!(cursor_of(bad), None, "{bad:?} was accepted");
        }
    }
}
