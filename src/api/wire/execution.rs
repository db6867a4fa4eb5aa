//! Executions on the wire.

use greenroom_actors::domain::fact::{Others, Suspension};
use greenroom_actors::domain::state::Outcome;
use greenroom_actors::requests::{Cancelled, ExecutionOutcome, Halted, Principal, Suspended};
use greenroom_actors::runtime::ReplayDefinition;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::json::{Closed, Object, present};
use crate::api::wire::Iso;
use crate::api::wire::shape::{cancelled, execution_status, optional_execution_id, suspended};

/// The answer of execute and resume.
#[derive(Debug, Serialize, ToSchema)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub suspension: Option<SuspensionView<'a>>,
    /// Everything that it waits for, or what has waited longest of that; the first is
    /// `suspension`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub suspensions: Option<Vec<SuspensionView<'a>>>,
    /// How much more there is, if any: the state shows it all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub suspensions_omitted: Option<usize>,
    /// Why it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<&'a str>,
}

impl<'a> ExecutionView<'a> {
    /// Shows how an execution left `running`.
    pub fn of(outcome: &'a ExecutionOutcome) -> Self {
        let view = Self {
            execution_id: outcome.execution_id.as_str(),
            start_at: Iso(outcome.started_at),
            end_at: None,
            status: outcome.status().as_str(),
            result: outcome.result(),
            suspension: None,
            suspensions: None,
            suspensions_omitted: None,
            reason: None,
        };
        match &outcome.halted {
            Halted::Suspended { suspension, others } => {
                let shown = SuspensionView::in_result(suspension);
                let waits =
                    Waits::of(Some(suspension), others.as_deref(), SuspensionView::in_result);
                Self {
                    suspension: Some(shown),
                    suspensions: waits.suspensions,
                    suspensions_omitted: waits.omitted,
                    ..view
                }
            }
            Halted::Ended { at, outcome } => {
                let reason = match outcome {
                    Outcome::Cancelled { reason } => Some(&**reason),
                    Outcome::Completed { .. } | Outcome::Failed { .. } => None,
                };
                Self { end_at: Some(Iso(*at)), reason, ..view }
            }
        }
    }
}

/// Everything that a suspended execution waits for, as far as it is told, and how much more there
/// is.
#[derive(Debug, Default)]
pub struct Waits<'a> {
    pub suspensions: Option<Vec<SuspensionView<'a>>>,
    pub omitted: Option<usize>,
}

impl<'a> Waits<'a> {
    /// Shows the first and the others.
    pub fn of(
        first: Option<&'a Suspension>,
        others: Option<&'a Others>,
        view: fn(&'a Suspension) -> SuspensionView<'a>,
    ) -> Self {
        let Some(first) = first else { return Self::default() };
        let more = others.map_or(&[][..], |others| &others.suspensions);
        let suspensions = std::iter::once(first).chain(more).map(view).collect();
        let omitted = others.map(|others| others.omitted).filter(|omitted| *omitted > 0);
        Self { suspensions: Some(suspensions), omitted }
    }
}

/// Who did something.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Principal)]
pub struct PrincipalView<'a> {
    pub id: &'a str,
    /// Whether a token said so; else it is what the request claimed.
    pub verified: bool,
}

impl<'a> PrincipalView<'a> {
    /// Shows who it was.
    pub fn of(principal: &'a Principal) -> Self {
        Self { id: &principal.id, verified: principal.verified }
    }
}

/// Why an execution stands still. Results and events call the step's index
/// `suspendedStepIndex`, states `stepIndex`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suspension)]
#[serde(rename_all = "camelCase")]
pub struct SuspensionView<'a> {
    /// Names this wait alone: `options.suspensionId` of the resume that answers it. Left out of
    /// what older versions recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub id: Option<&'a str>,
    pub suspended_at: Iso,
    pub reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub suspended_step_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub step_index: Option<usize>,
    pub step_id: &'a str,
    pub path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub payload: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub deadline: Option<Iso>,
    /// Who suspended it from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub suspended_by: Option<PrincipalView<'a>>,
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
            id: suspension.id.as_deref(),
            suspended_by: suspension.by.as_deref().map(PrincipalView::of),
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
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suspended)]
#[serde(rename_all = "camelCase")]
pub struct SuspendView<'a> {
    pub execution_id: &'a str,
    #[schema(schema_with = suspended)]
    pub status: &'static str,
    pub suspension: SuspendedView<'a>,
}

/// `suspension` in the answer of suspend.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SuspendedNow)]
#[serde(rename_all = "camelCase")]
pub struct SuspendedView<'a> {
    pub id: &'a str,
    pub suspended_at: Iso,
    pub reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub suspended_by: Option<PrincipalView<'a>>,
}

impl<'a> SuspendView<'a> {
    /// Shows a suspension that was asked for.
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

/// The answer of cancel.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cancelled)]
#[serde(rename_all = "camelCase")]
pub struct CancelView<'a> {
    pub execution_id: &'a str,
    #[schema(schema_with = cancelled)]
    pub status: &'static str,
    pub cancelled_at: Iso,
    pub reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cancelled_by: Option<PrincipalView<'a>>,
}

impl<'a> CancelView<'a> {
    /// Shows a cancellation.
    pub fn of(cancelled: &'a Cancelled) -> Self {
        Self {
            execution_id: cancelled.execution_id.as_str(),
            status: "cancelled",
            cancelled_at: Iso(cancelled.cancelled_at),
            reason: &cancelled.reason,
            cancelled_by: cancelled.by.as_deref().map(PrincipalView::of),
        }
    }
}

/// The body of suspend and cancel.
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
    /// Who asks, where no token says so.
    pub user_id: Option<String>,
}

/// The body of resume.
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

/// `options` of resume. A name that is `null` is refused: its caller meant one, and without it
/// whatever waits would be answered.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeOptions {
    /// The step that is answered, by its id or its path. Needed where several wait.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    pub step_id: Option<String>,
    /// The `id` of the suspension that is answered. Refused when it no longer waits.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    pub suspension_id: Option<String>,
    /// Who answers, where no token says so. Tells apart the keys of different users.
    pub user_id: Option<String>,
}

/// The body of replay.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ReplayBody)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayBody {
    /// The top-level step to begin with; without one, the step that failed.
    #[serde(default)]
    pub step_id: Option<String>,
    /// Which definition runs: the one that the execution ran, or the one that is configured now.
    #[serde(default)]
    pub definition: Option<DefinitionChoice>,
    /// Answers what the step asks.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Value, required = false)]
    pub resume_data: Option<Value>,
    /// In place of the input of the execution that is replayed.
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
    /// The id of the new execution.
    #[schema(schema_with = optional_execution_id)]
    pub execution_id: Option<String>,
    /// Who asks, where no token says so. Whose the new execution is does not depend on it.
    pub user_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::domain::time::Timestamp;
    use serde_json::{json, to_value};

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
    }

    #[test]
    fn a_suspended_result_says_why_and_where() {
        let suspension = Suspension {
            id: Some("5f1e".into()),
            by: Some(Arc::new(Principal::claimed("ops"))),
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
                "payload": 5, "suspendedBy": { "id": "ops", "verified": false }
            }
        });
        let mut expected = expected;
        expected["suspensions"] = json!([expected["suspension"]]);
        assert_eq!(to_value(ExecutionView::of(&outcome)).unwrap(), expected);
        let in_state = SuspensionView::in_state(outcome.suspension().unwrap());
        assert_eq!(to_value(in_state).unwrap()["stepIndex"], 1);
    }
}
