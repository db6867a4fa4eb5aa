//! Executions on the wire.

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::ports::store::{Cursor, Projection};
use greenroom_actors::requests::{Cancelled, ExecutionState, Failure, Rest, StepState, Suspended};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::json::{Object, present};
use crate::api::wire::Iso;

/// The answer of execute and resume.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionView<'a> {
    pub execution_id: &'a str,
    pub start_at: Iso,
    pub end_at: Option<Iso>,
    pub status: &'static str,
    pub result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<SuspensionView<'a>>,
    /// Why it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

impl<'a> ExecutionView<'a> {
    /// Shows where an execution came to rest.
    pub fn of(rest: &'a Rest) -> Self {
        Self {
            execution_id: rest.execution_id.as_str(),
            start_at: Iso(rest.started_at),
            end_at: rest.ended_at.map(Iso),
            status: rest.status.as_str(),
            result: rest.result.as_deref(),
            suspension: rest.suspension.as_deref().map(SuspensionView::in_result),
            reason: rest.cancel_reason.as_deref(),
        }
    }
}

/// Why an execution stands still. The specification spells the index in two ways.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspensionView<'a> {
    pub suspended_at: Iso,
    pub reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_step_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<usize>,
    pub step_id: &'a str,
    pub path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Iso>,
}

impl<'a> SuspensionView<'a> {
    /// As execution results and events show it.
    pub fn in_result(suspension: &'a Suspension) -> Self {
        let index = Some(suspension.step_index);
        Self { suspended_step_index: index, step_index: None, ..Self::in_state(suspension) }
    }

    /// As the state shows it.
    pub fn in_state(suspension: &'a Suspension) -> Self {
        Self {
            suspended_at: Iso(suspension.suspended_at),
            reason: &suspension.reason,
            suspended_step_index: None,
            step_index: Some(suspension.step_index),
            step_id: &suspension.step_id,
            path: &suspension.path,
            payload: suspension.payload.as_deref(),
            deadline: suspension.deadline.map(Iso),
        }
    }
}

/// The answer of suspend.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspendView<'a> {
    pub execution_id: &'a str,
    pub status: &'static str,
    pub suspension: SuspendedView<'a>,
}

/// `suspension` in the answer of suspend.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspendedView<'a> {
    pub suspended_at: Iso,
    pub reason: &'a str,
}

impl<'a> SuspendView<'a> {
    /// Shows a suspension that was asked for.
    pub fn of(suspended: &'a Suspended) -> Self {
        let suspended_at = Iso(suspended.suspended_at);
        Self {
            execution_id: suspended.execution_id.as_str(),
            status: "suspended",
            suspension: SuspendedView { suspended_at, reason: &suspended.reason },
        }
    }
}

/// The answer of cancel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelView<'a> {
    pub execution_id: &'a str,
    pub status: &'static str,
    pub cancelled_at: Iso,
    pub reason: &'a str,
}

impl<'a> CancelView<'a> {
    /// Shows a cancellation.
    pub fn of(cancelled: &'a Cancelled) -> Self {
        Self {
            execution_id: cancelled.execution_id.as_str(),
            status: "cancelled",
            cancelled_at: Iso(cancelled.cancelled_at),
            reason: &cancelled.reason,
        }
    }
}

/// The answer of state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateView<'a> {
    pub execution_id: &'a str,
    pub id: &'a str,
    pub workflow_id: &'a str,
    pub status: &'static str,
    pub start_at: Iso,
    pub created_at: Iso,
    pub updated_at: Iso,
    pub end_at: Option<Iso>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<SuspensionView<'a>>,
    pub suspensions: Vec<SuspensionView<'a>>,
    pub input: &'a Value,
    pub context: &'a Value,
    pub result: Option<&'a Value>,
    pub error: Option<FailureView<'a>>,
    pub user_id: Option<&'a str>,
    pub conversation_id: Option<&'a str>,
    pub parent_execution_id: Option<&'a str>,
    pub definition_hash: &'a str,
    pub steps: Vec<StepStateView<'a>>,
    pub last_sequence: u64,
}

impl<'a> StateView<'a> {
    /// Shows everything that callers may know.
    pub fn of(state: &'a ExecutionState) -> Self {
        let header = &*state.header;
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
            definition_hash: &header.definition_hash,
            steps: state.steps.iter().map(StepStateView::of).collect(),
            last_sequence: state.last_seq,
        }
    }
}

/// `error` of the state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureView<'a> {
    pub message: &'a str,
    pub step_id: Option<&'a str>,
}

impl<'a> FailureView<'a> {
    fn of(failure: &'a Failure) -> Self {
        Self { message: &failure.message, step_id: failure.step_id.as_deref() }
    }
}

/// An item of `steps` of the state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepStateView<'a> {
    pub step_id: &'a str,
    pub path: &'a str,
    pub status: &'static str,
    pub attempts: u32,
    pub started_at: Option<Iso>,
    pub ended_at: Option<Iso>,
    pub output: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_execution_id: Option<&'a str>,
}

impl<'a> StepStateView<'a> {
    fn of(step: &'a StepState) -> Self {
        Self {
            step_id: &step.step_id,
            path: &step.path,
            status: step.status.as_str(),
            attempts: step.attempts,
            started_at: step.started_at.map(Iso),
            ended_at: step.ended_at.map(Iso),
            output: step.output.as_deref(),
            error: step.error.as_deref(),
            child_execution_id: step.child.as_ref().map(|child| child.as_str()),
        }
    }
}

/// An answer of the lists.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionsView<'a> {
    pub executions: Vec<ExecutionItemView<'a>>,
    pub next_cursor: Option<String>,
}

/// An item of the lists.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionItemView<'a> {
    pub execution_id: &'a str,
    pub workflow_id: &'a str,
    pub status: &'static str,
    pub start_at: Iso,
    pub updated_at: Iso,
    pub end_at: Option<Iso>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<SuspensionView<'a>>,
    pub user_id: Option<&'a str>,
    pub conversation_id: Option<&'a str>,
    pub parent_execution_id: Option<&'a str>,
    pub last_sequence: u64,
}

impl<'a> ExecutionsView<'a> {
    /// Shows a page of a list.
    pub fn of(rows: &'a [Projection], next: Option<Cursor>) -> Self {
        Self {
            executions: rows.iter().map(ExecutionItemView::of).collect(),
            next_cursor: next.map(cursor_text),
        }
    }
}

impl<'a> ExecutionItemView<'a> {
    fn of(row: &'a Projection) -> Self {
        let header = &*row.header;
        Self {
            execution_id: header.id.as_str(),
            workflow_id: &header.workflow_id,
            status: row.status.as_str(),
            start_at: Iso(header.created_at),
            updated_at: Iso(row.updated_at),
            end_at: row.ended_at.map(Iso),
            suspension: row.suspension.as_deref().map(SuspensionView::in_state),
            user_id: header.user_id.as_deref(),
            conversation_id: header.conversation_id.as_deref(),
            parent_execution_id: header.parent.as_ref().map(|parent| parent.execution.as_str()),
            last_sequence: row.last_seq,
        }
    }
}

/// A place in a list, as text that callers hand back unread.
pub fn cursor_text(cursor: Cursor) -> String {
    format!("{:016x}{:016x}", cursor.created_at.0, cursor.row)
}

/// Reads what [`cursor_text`] wrote.
pub fn cursor_of(text: &str) -> Option<Cursor> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok().map(u64::cast_signed);
    let (created_at, row) = text.split_at(16);
    Some(Cursor {
        created_at: greenroom_actors::domain::time::Timestamp(number(created_at)?),
        row: number(row)?,
    })
}

/// The body of suspend and cancel.
#[derive(Debug, Default, Deserialize)]
pub struct ReasonBody {
    #[serde(default)]
    pub reason: Option<String>,
}

/// The body of resume.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumeBody {
    #[serde(default, deserialize_with = "present")]
    pub resume_data: Option<Value>,
    #[serde(default)]
    pub options: Option<Object<ResumeOptions>>,
}

/// `options` of resume. `userId` tells apart the keys of different users.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResumeOptions {
    pub step_id: Option<String>,
    pub user_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::ports::store::Status;
    use serde_json::{json, to_value};

    use super::*;

    fn rest(status: Status) -> Rest {
        Rest {
            execution_id: ExecutionId::trusted("x1"),
            status,
            started_at: Timestamp(1_700_000_000_123),
            ended_at: None,
            result: None,
            error: None,
            suspension: None,
            cancel_reason: None,
        }
    }

    #[test]
    fn a_completed_result_has_no_suspension() {
        let rest = Rest {
            ended_at: Some(Timestamp(1_700_000_000_124)),
            result: Some(Arc::new(json!({ "n": 3 }))),
            ..rest(Status::Completed)
        };
        let expected = json!({
            "executionId": "x1", "startAt": "2023-11-14T22:13:20.123Z",
            "endAt": "2023-11-14T22:13:20.124Z", "status": "completed", "result": { "n": 3 }
        });
        assert_eq!(to_value(ExecutionView::of(&rest)).unwrap(), expected);
    }

    #[test]
    fn a_suspended_result_says_why_and_where() {
        let suspension = Suspension {
            reason: "needs a yes".into(),
            suspended_at: Timestamp(1_700_000_000_200),
            step_id: "manager".into(),
            path: "checks/one/manager".into(),
            step_index: 1,
            payload: Some(Arc::new(json!(5))),
            deadline: None,
        };
        let rest = Rest { suspension: Some(Arc::new(suspension)), ..rest(Status::Suspended) };
        let expected = json!({
            "executionId": "x1", "startAt": "2023-11-14T22:13:20.123Z", "endAt": null,
            "status": "suspended", "result": null,
            "suspension": {
                "suspendedAt": "2023-11-14T22:13:20.200Z", "reason": "needs a yes",
                "suspendedStepIndex": 1, "stepId": "manager", "path": "checks/one/manager",
                "payload": 5
            }
        });
        assert_eq!(to_value(ExecutionView::of(&rest)).unwrap(), expected);
        let in_state = SuspensionView::in_state(rest.suspension.as_deref().unwrap());
        assert_eq!(to_value(in_state).unwrap()["stepIndex"], 1);
    }

    #[test]
    fn cursors_come_back_as_they_went_out() {
        for (created_at, row) in [(0, 1), (1_700_000_000_123, i64::MAX), (-1, 7)] {
            let cursor = Cursor { created_at: Timestamp(created_at), row };
            assert_eq!(cursor_of(&cursor_text(cursor)), Some(cursor));
        }
        for bad in ["", "x", "+0000000000000000000000000000001", &"g".repeat(32)] {
            assert_eq!(cursor_of(bad), None, "{bad:?} was accepted");
        }
    }
}
