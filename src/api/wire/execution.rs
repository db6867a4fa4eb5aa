//! Executions on the wire.

use greenroom_actors::ports::store::ReplayedFrom;
use greenroom_actors::requests::{
    Cancelled, ExecutionOutcome, ExecutionState, Halted, Principal, Suspended,
};
use greenroom_actors::runtime::ReplayDefinition;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::json::{Closed, Object, present};
use crate::api::wire::Iso;
use crate::api::wire::shape::{cancelled, execution_status, optional_execution_id, suspended};
use crate::api::wire::state::LineageView;
use crate::api::wire::suspension::{SuspensionView, SuspensionsView};

/// Result of execute, resume and replay.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ExecutionResult)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionView<'a> {
    pub execution_id: &'a str,
    pub start_at: Iso,
    #[schema(required)]
    pub end_at: Option<Iso>,
    #[schema(schema_with = execution_status)]
    pub status: &'static str,
    #[schema(value_type = Value, required)]
    pub result: Option<&'a Value>,
    #[serde(flatten)]
    pub suspensions: SuspensionsView<'a>,
    /// Reason of the cancellation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// Origin of a replay, with the step that it began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_from: Option<LineageView<'a>>,
}

impl<'a> ExecutionView<'a> {
    /// Shows an execution that left `running`.
    pub fn of(outcome: &'a ExecutionOutcome) -> Self {
        let view = Self {
            execution_id: outcome.execution_id.as_str(),
            start_at: Iso(outcome.started_at),
            status: outcome.status().as_str(),
            result: outcome.result(),
            ..Self::default()
        };
        match &outcome.halted {
            Halted::Suspended { suspension, others } => {
                let (others, view_of) = (others.as_deref(), SuspensionView::in_result);
                Self { suspensions: SuspensionsView::of(Some(suspension), others, view_of), ..view }
            }
            Halted::Ended { at, outcome } => {
                let reason = outcome.cancel_reason().map(|reason| &**reason);
                Self { end_at: Some(Iso(*at)), reason, ..view }
            }
        }
    }

    /// Shows the outcome of a replay.
    pub fn of_replay(outcome: &'a ExecutionOutcome, from: Option<&'a ReplayedFrom>) -> Self {
        Self { replayed_from: from.map(LineageView::recorded), ..Self::of(outcome) }
    }

    /// Shows an execution as it is, also while it runs.
    pub fn now(state: &'a ExecutionState) -> Self {
        // Steps may already wait while others run: those are shown once it is suspended.
        let is_suspended = state.suspension.is_some();
        let suspensions = if is_suspended { &*state.suspensions } else { &[] };
        Self {
            execution_id: state.header.id.as_str(),
            start_at: Iso(state.header.created_at),
            end_at: state.ended_at.map(Iso),
            status: state.status.as_str(),
            result: state.result.as_deref(),
            suspensions: SuspensionsView::among(suspensions, SuspensionView::in_result),
            reason: state.cancel_reason.as_deref(),
            replayed_from: state.replayed_from.as_ref().map(LineageView::of),
        }
    }
}

/// User who did something.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Principal)]
pub struct PrincipalView<'a> {
    pub id: &'a str,
    /// True if a token proved the id; otherwise the request claimed it.
    pub verified: bool,
}

impl<'a> PrincipalView<'a> {
    /// Shows a principal.
    pub fn of(principal: &'a Principal) -> Self {
        Self { id: &principal.id, verified: principal.verified }
    }
}

/// Response of suspend.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suspended)]
#[serde(rename_all = "camelCase")]
pub struct SuspendView<'a> {
    pub execution_id: &'a str,
    #[schema(schema_with = suspended)]
    pub status: &'static str,
    pub suspension: SuspendedView<'a>,
}

/// `suspension` in the response of suspend.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SuspendedNow)]
#[serde(rename_all = "camelCase")]
pub struct SuspendedView<'a> {
    pub id: &'a str,
    pub suspended_at: Iso,
    pub reason: &'a str,
    pub suspended_by: Option<PrincipalView<'a>>,
}

impl<'a> SuspendView<'a> {
    /// Shows a requested suspension.
    pub fn of(suspended: &'a Suspended) -> Self {
        let suspended_at = Iso(suspended.suspended_at);
        Self {
            execution_id: suspended.execution_id.as_str(),
            status: "suspended",
            suspension: SuspendedView {
                id: &suspended.suspension_id,
                suspended_at,
                reason: &suspended.reason,
                suspended_by: suspended.by.as_deref().map(PrincipalView::of),
            },
        }
    }
}

/// Response of cancel.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cancelled)]
#[serde(rename_all = "camelCase")]
pub struct CancelView<'a> {
    pub execution_id: &'a str,
    /// `running` while it compensates its completed steps.
    #[schema(schema_with = cancelled)]
    pub status: &'static str,
    pub cancelled_at: Iso,
    pub reason: &'a str,
    pub cancelled_by: Option<PrincipalView<'a>>,
}

impl<'a> CancelView<'a> {
    /// Shows a cancellation.
    pub fn of(cancelled: &'a Cancelled) -> Self {
        Self {
            execution_id: cancelled.execution_id.as_str(),
            status: if cancelled.compensates { "running" } else { "cancelled" },
            cancelled_at: Iso(cancelled.cancelled_at),
            reason: &cancelled.reason,
            cancelled_by: cancelled.by.as_deref().map(PrincipalView::of),
        }
    }
}

/// Body of suspend and cancel.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = ReasonBody)]
#[serde(deny_unknown_fields)]
pub struct ReasonBody {
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<ReasonOptions>)]
    pub options: Option<Object<ReasonOptions>>,
}

impl Closed for ReasonBody {
    const KEYS: &'static [&'static str] = &["reason", "options", "options.userId"];
}

/// `options` of suspend and cancel.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReasonOptions {
    /// User of the request, if no token names one.
    pub user_id: Option<String>,
}

/// Body of resume.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeBody {
    #[serde(default, deserialize_with = "present")]
    pub resume_data: Option<Value>,
    #[serde(default)]
    pub options: Option<Object<ResumeOptions>>,
}

impl Closed for ResumeBody {
    const KEYS: &'static [&'static str] =
        &["resumeData", "options", "options.stepId", "options.suspensionId", "options.userId"];
}

/// `options` of resume. A name that is `null` is refused: its caller meant a certain step, and
/// without a name any waiting step would be resumed.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeOptions {
    /// Id or path of the step to resume. Required if several steps wait.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    pub step_id: Option<String>,
    /// `id` of the suspension to resume. Refused if it no longer waits.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    pub suspension_id: Option<String>,
    /// User of the request, if no token names one. Part of the scope of `Idempotency-Key`.
    pub user_id: Option<String>,
}

/// Body of replay.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ReplayBody)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayBody {
    /// Top-level step to start from. Default: the step that failed, or the first step that was
    /// compensated, if one before the failed step was.
    #[serde(default)]
    pub step_id: Option<String>,
    /// Definition to run: that of the execution, or the currently configured one.
    #[serde(default)]
    pub definition: Option<DefinitionChoice>,
    /// Data that resumes the step. Counts only from a caller who is among those who are asked;
    /// otherwise the step suspends.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Value, required = false)]
    pub resume_data: Option<Value>,
    /// Replaces the input of the replayed execution.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Value, required = false)]
    pub input: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<ReplayOptions>)]
    pub options: Option<Object<ReplayOptions>>,
}

impl Closed for ReplayBody {
    const KEYS: &'static [&'static str] = &[
        "stepId",
        "definition",
        "resumeData",
        "input",
        "options",
        "options.executionId",
        "options.userId",
    ];
}

/// `definition` of replay.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionChoice {
    #[default]
    Original,
    Current,
}

impl DefinitionChoice {
    pub fn is_current(self) -> bool {
        matches!(self, Self::Current)
    }
}

impl From<DefinitionChoice> for ReplayDefinition {
    fn from(choice: DefinitionChoice) -> Self {
        match choice {
            DefinitionChoice::Original => Self::Original,
            DefinitionChoice::Current => Self::Current,
        }
    }
}

/// `options` of replay.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayOptions {
    /// Id of the new execution.
    #[schema(schema_with = optional_execution_id)]
    pub execution_id: Option<String>,
    /// User of the request, if no token names one. Does not set the owner of the new execution.
    pub user_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::domain::state::Outcome;
    use greenroom_actors::domain::time::Timestamp;
    use serde_json::{json, to_value};

    use greenroom_actors::domain::fact::Suspension;

    use super::*;

    fn outcome(halted: Halted) -> ExecutionOutcome {
        ExecutionOutcome {
            execution_id: ExecutionId::trusted("x1"),
            trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
            started_at: Timestamp(1_700_000_000_123),
            halted,
        }
    }

    #[test]
    fn a_completed_result_has_no_suspension() {
        let completed = Outcome::Completed { result: Arc::new(json!({ "n": 3 })) };
        let outcome =
            outcome(Halted::Ended { at: Timestamp(1_700_000_000_124), outcome: completed });
        let expected = json!({
            "executionId": "x1", "startAt": "2023-11-14T22:13:20.123Z",
            "endAt": "2023-11-14T22:13:20.124Z", "status": "completed", "result": { "n": 3 }
        });
        assert_eq!(to_value(ExecutionView::of(&outcome)).unwrap(), expected);
        let from = ReplayedFrom { execution: ExecutionId::trusted("x0"), step_id: "b".into() };
        let replay = to_value(ExecutionView::of_replay(&outcome, Some(&from))).unwrap();
        assert_eq!(replay["replayedFrom"], json!({ "executionId": "x0", "stepId": "b" }));
    }

    #[test]
    fn a_suspended_result_shows_its_suspension() {
        let suspension = Suspension {
            id: Some("5f1e".into()),
            by: Some(Arc::new(Principal::claimed("ops"))),
            pause: false,
            payload_omitted: false,
            reason: "needs a yes".into(),
            suspended_at: Timestamp(1_700_000_000_200),
            step_id: "manager".into(),
            path: "checks/one/manager".into(),
            step_index: 1,
            payload: Some(Arc::new(json!(5))),
            deadline: None,
        };
        let outcome = outcome(Halted::Suspended { suspension: Arc::new(suspension), others: None });
        let expected = json!({
            "executionId": "x1", "startAt": "2023-11-14T22:13:20.123Z", "endAt": null,
            "status": "suspended", "result": null,
            "suspension": {
                "id": "5f1e", "suspendedAt": "2023-11-14T22:13:20.200Z", "reason": "needs a yes",
                "suspendedStepIndex": 1, "stepId": "manager", "path": "checks/one/manager",
                "payload": 5, "suspendedBy": { "id": "ops", "verified": false }, "pause": true
            }
        });
        let mut expected = expected;
        expected["suspensions"] = json!([expected["suspension"]]);
        assert_eq!(to_value(ExecutionView::of(&outcome)).unwrap(), expected);
        let in_state = SuspensionView::in_state(outcome.suspension().unwrap());
        assert_eq!(to_value(in_state).unwrap()["stepIndex"], 1);
    }
}
